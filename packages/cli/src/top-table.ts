import { clientText, NO_FIELD } from "./client-text.ts"
import { type OutputLine, printable, tinted, widthOf } from "./line.ts"

/** The response of `ListClients`. 64-bit numbers are strings in JSON. */
export interface TopAnswer {
  readonly service: string
  readonly atMs: string
  readonly sinceMs: string
  /** How many processes have recorded the service. Absent from older versions of the service. */
  readonly instances?: number
  readonly rules: readonly TopRule[]
  readonly refused: readonly TopClient[]
}

interface TopRule {
  readonly rule: string
  readonly shadow: boolean
  readonly refusedClients: number
  readonly seconds: { readonly admitted: readonly number[]; readonly refused: readonly number[] } & {
    readonly shadowed: readonly number[]
    readonly overLimit: readonly number[]
  }
}

interface TopClient {
  readonly rule: string
  readonly key: string
  readonly shadow: boolean
  readonly refusals: number
  readonly error: number
  readonly reason: string
  readonly lastMs: string
  readonly untilMs?: string
}

/** Shorter than in `sluice clients show`, because they are in a table. */
const REASONS: Readonly<Record<string, string>> = {
  quota: "limit used up",
  penalty: "blocked: penalty",
  blocked: "blocked: operator",
  denied: "on deny list",
  cost: "costs too much",
  "in-flight": "too many in flight",
  "missing-field": "field missing",
}

/** More rules would push the clients off the screen. */
const MOST_RULES = 8
const SECONDS = 300
const BAR_SECONDS = 10
const BARS = "▁▂▃▄▅▆▇█"

/** Returns the tables of rules and of clients, in lines of at most `width` columns. `asked` is the only rule that they list. */
export function topLines(answer: TopAnswer, width: number, asked?: string): readonly OutputLine[] {
  const { service, rules, refused, instances = 1 } = answer
  const atMs = Number(answer.atMs)
  const clock = new Date(atMs).toTimeString().slice(0, 8)
  const head = cut(
    `${printable(service)} at ${clock}, recorded for ${span(atMs - Number(answer.sinceMs))}${instances > 1 ? ` by ${instances} processes` : ""}`,
    width,
  )
  if (rules.length === 0) {
    const none = asked === undefined ? "no rule has" : `rule ${JSON.stringify(asked)} has not`
    return [tinted("strong", head), `${none} decided a request yet`]
  }
  const ofRules = rules.slice(0, MOST_RULES).map(({ rule, shadow, seconds, refusedClients }) => {
    const bad = shadow ? seconds.shadowed : seconds.refused
    const good = sum(seconds.admitted) + sum(seconds.overLimit)
    return [named(rule, shadow), sparkline(bad), number(good), number(sum(bad)), number(refusedClients)]
  })
  const ofClients = refused.map((client) => [
    named(client.rule, client.shadow),
    clientText(client.key, client.reason === "missing-field" ? NO_FIELD : undefined),
    client.error === 0
      ? number(client.refusals)
      : `${number(client.refusals - client.error)}–${number(client.refusals)}`,
    REASONS[client.reason] ?? client.reason,
    `${span(atMs - Number(client.lastMs))} ago`,
    untilText(client.untilMs, atMs),
  ])
  return [
    tinted("strong", head),
    ...table([["rule", "refused, last 5 min", "admitted", "refused", "clients"], ...ofRules], width),
    ...(rules.length > MOST_RULES ? [cut("and more rules, which did not refuse more", width)] : []),
    "",
    ...(refused.length === 0
      ? [cut("no client was refused in the last 5 to 10 minutes", width)]
      : table(
          [["rule", "client", "refused, 5–10 min", "reason", "last", "retry"], ...ofClients],
          width,
          CLIENT,
        )),
  ]
}

/** A shadow rule admits the clients that it lists. */
function named(rule: string, isShadow: boolean): string {
  return isShadow ? `${rule} (shadow)` : rule
}

/** Returns a bar for each ten seconds. Only a bar without refusals has the least height. */
function sparkline(seconds: readonly number[]): string {
  const bars: number[] = Array(SECONDS / BAR_SECONDS).fill(0)
  for (const [i, count] of seconds.entries()) {
    const bar = Math.floor((SECONDS - seconds.length + i) / BAR_SECONDS)
    bars[bar] = (bars[bar] ?? 0) + count
  }
  const highest = Math.max(...bars)
  return bars.map((bar) => BARS[bar === 0 ? 0 : Math.ceil((bar / highest) * (BARS.length - 1))]).join("")
}

/**
 * Returns lines of columns, the first of which is the quiet heading. Cuts the widest columns until the lines fit, but the
 * `main` column only to a third of the width. Lines that are still too long lose their end.
 */
function table(rows: readonly (readonly string[])[], width: number, main?: number): readonly OutputLine[] {
  const cells = rows.map((row) => row.map(printable))
  const [heading = []] = cells
  const widths = heading.map((_, at) => Math.max(...cells.map((row) => widthOf(row[at] ?? ""))))
  const total = (): number => widths.reduce((all, each) => all + each + 2, -2)
  const leastOf = (at: number): number => (at === main ? Math.max(SHORTEST, Math.floor(width / 3)) : SHORTEST)
  const cuttable = (): readonly number[] => widths.map((each, at) => (each > leastOf(at) ? each : 0))
  while (total() > width && Math.max(...cuttable()) > 0) {
    const widest = cuttable().indexOf(Math.max(...cuttable()))
    widths[widest] = Math.max(leastOf(widest), (widths[widest] as number) - (total() - width))
  }
  return cells.map((row, at) => {
    const padded = row.map((cell, column) => {
      const text = cut(cell, widths[column] as number)
      return text + " ".repeat((widths[column] as number) - widthOf(text))
    })
    const line = cut(padded.join("  ").trimEnd(), width)
    return at === 0 ? tinted("quiet", line) : line
  })
}

/** No column is cut to fewer terminal columns than these. */
const SHORTEST = 8
/** The column of the clients. A list without their names would be useless. */
const CLIENT = 1

/** Returns the text, cut to `width` terminal columns with an ellipsis. A sparkline keeps its latest bars instead. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  if (/^[▁-█]+$/.test(text)) return text.slice(-width)
  let kept = ""
  for (const char of text) {
    if (widthOf(kept + char) > width - 1) break
    kept += char
  }
  return `${kept}…`
}

function untilText(untilMs: string | undefined, atMs: number): string {
  if (untilMs === undefined) return "never"
  const leftMs = Number(untilMs) - atMs
  return leftMs <= 0 ? "now" : `in ${span(leftMs)}`
}

/** Returns a time in its largest unit: "12 s", "5 min", "3 h" or "4 d". */
function span(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0)
}

function number(count: number): string {
  return count.toLocaleString("en-US")
}
