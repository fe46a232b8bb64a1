import { count, counted, duration, percent } from "../quantities.ts"
import type { LogSummary } from "../reading/log.ts"
import { type TextLine, tinted } from "../text-line.ts"
import type { AlgorithmResult, Comparison, LiveComparison, ReplayResult, RuleResult } from "./result.ts"

const MOST_SHOWN = 20

/** Returns the result of a replay as lines of text. `summary` is the summary of its logs. */
export function replayLines(result: ReplayResult, summary: Pick<LogSummary, "reorderedByMs">): TextLine[] {
  const { rules, total, against, algorithms, live, bounds, notes, clients } = result
  const [mainNote, ...others] = notes
  return [
    tinted("quiet", mainNote as string),
    tinted("strong", logLine(result, summary)),
    ...table([HEADINGS, ...rules.map(ruleRow), totalRow(total)]),
    ...others.map((note) => tinted(note.includes(": not judged: ") ? "bad" : "quiet", note)),
    ...clientLines(clients),
    ...(algorithms === undefined ? [] : algorithmLines(algorithms)),
    ...(against === undefined ? [] : againstLines(against)),
    ...(live === undefined ? [] : liveLines(live)),
    ...bounds.map(({ bound, value, holds }) =>
      tinted(holds ? "good" : "bad", `${holds ? "ok" : "exceeded"}: ${bound}: ${value}`),
    ),
  ]
}

function logLine({ log }: ReplayResult, { reorderedByMs }: Pick<LogSummary, "reorderedByMs">): string {
  const [first] = log.files
  const name = log.files.length === 1 ? first?.name : `${log.files.length} files`
  const formats = [...new Set(log.files.map(({ format }) => format))].join(" and ")
  const spanMs = (log.to ?? 0) - (log.from ?? 0)
  const moved = log.reordered === 0 ? "" : ` by up to ${Math.ceil(reorderedByMs / 1_000)} s`
  return (
    `${name}: ${formats}, ${counted(log.lines, "line")}, ${duration(spanMs)}, ${counted(log.clients, "client")}; ` +
    `${counted(log.reordered, "line")} reordered${moved}, ${count(log.late)} late, ${count(log.unparsed)} unparsed` +
    (log.skipped === 0 ? "" : `, ${count(log.skipped)} skipped`)
  )
}

const HEADINGS = [
  "rule",
  "requests",
  "refused",
  "",
  "clients",
  "",
  "peak of the refused clients, relative to the limit",
]

function ruleRow({ name, judged, seen, refused, clients, ratios, shadow, peak }: RuleResult): string[] {
  if (!judged) return [name, "not judged"]
  return [
    shadow ? `${name} (shadow)` : name,
    ...countCells(seen, refused, clients),
    peak === undefined
      ? clients.refused === 0
        ? ""
        : ratioText(ratios)
      : `${peak.toFixed(1)}x, all clients together`,
  ]
}

function totalRow({ seen, refused, clients }: ReplayResult["total"]): string[] {
  return ["all rules", ...countCells(seen, refused, clients)]
}

function countCells(
  seen: number,
  refused: number,
  clients: RuleResult["clients"] | ReplayResult["total"]["clients"],
): string[] {
  return [
    count(seen),
    count(refused),
    percent(refused, seen),
    count(clients.refused),
    percent(clients.refused, clients.seen),
  ]
}

function ratioText(ratios: RuleResult["ratios"]): string {
  const before = (at: number): number => ratios[at - 1]?.upTo as number
  return ratios
    .map(({ upTo, clients }, at) => `${clients} ${upTo === null ? `above ${before(at)}x` : `up to ${upTo}x`}`)
    .join(", ")
}

function clientLines(clients: ReplayResult["clients"]): TextLine[] {
  if (clients.length === 0) return []
  const shown = clients.slice(0, MOST_SHOWN)
  return [
    "",
    ...table([
      ["client", "rule", "requests", "refused", "peak"],
      ...shown.map(({ client, rule, requests, refused, peak }) => [
        client === "" ? "(no address)" : client,
        rule,
        count(requests),
        count(refused),
        `${peak.toFixed(1)}x`,
      ]),
    ]),
    ...(clients.length > shown.length ? [tinted("quiet", "--report and --json show more clients.")] : []),
  ]
}

function algorithmLines(results: readonly AlgorithmResult[]): TextLine[] {
  const algorithms = [...new Set(results.map(({ algorithm }) => algorithm))]
  const rules = [...new Set(results.map(({ rule }) => rule))]
  const cell = (rule: string, algorithm: string): string => {
    const found = results.find((each) => each.rule === rule && each.algorithm === algorithm)
    if (found?.refused === undefined || found.clients === undefined) return "-"
    return `${counted(found.refused, "request")}, ${counted(found.clients, "client")}`
  }
  return [
    "",
    ...table([
      ["refused with", ...algorithms],
      ...rules.map((rule) => [rule, ...algorithms.map((algorithm) => cell(rule, algorithm))]),
    ]),
    ...results.flatMap(({ rule, algorithm, problem }) =>
      problem === undefined ? [] : [tinted("quiet", `${rule} cannot use ${algorithm}: ${problem}`)],
    ),
  ]
}

function againstLines({ file, newlyRefused, noLongerRefused, rules, clients }: Comparison): TextLine[] {
  const changed = rules.filter((rule) => rule.newlyRefused + rule.noLongerRefused > 0)
  return [
    "",
    tinted("strong", `compared with ${file}:`),
    `  newly refused:     ${count(newlyRefused.requests)} requests; ${count(newlyRefused.clients)} clients that were not refused before`,
    `  no longer refused: ${count(noLongerRefused.requests)} requests; ${count(noLongerRefused.clients)} clients that are never refused now`,
    ...(changed.length === 0
      ? []
      : table([
          ["rule", "newly refused", "no longer refused"],
          ...changed.map((rule) => [rule.name, count(rule.newlyRefused), count(rule.noLongerRefused)]),
        ])),
    ...(clients.length === 0
      ? []
      : table([
          ["client", "refused before", "refused now"],
          ...clients.map((each) => [each.client, count(each.before), count(each.after)]),
        ])),
  ]
}

function liveLines({ compared, different, differences }: LiveComparison): TextLine[] {
  const shown = differences.slice(0, MOST_SHOWN)
  const verdict = `${count(different)} of ${count(compared)} verdicts in the log differ from the replay`
  return [
    "",
    tinted(different === 0 ? "good" : "changed", verdict),
    ...shown.map(({ file, line, live, replayed }) => `  ${file}:${line}: live ${live}, replay ${replayed}`),
    ...(different > shown.length
      ? [tinted("quiet", `  ${count(different - shown.length)} more; --json has the first 10,000`)]
      : []),
  ]
}

/** Returns rows as columns. Aligns columns of numbers to the right, except the first column. */
function table(rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(...rows.map((row) => row.length))
  const columns = Array.from({ length: width }, (_, at) => rows.map((row) => row[at] ?? ""))
  const padded = columns.map((cells, column) => {
    const longest = Math.max(...cells.map((cell) => cell.length))
    const isNumeric = column > 0 && cells.slice(1).every((cell) => /^[<>\d.,%x–]*$|^not judged$/.test(cell))
    return cells.map((cell) => (isNumeric ? cell.padStart(longest) : cell.padEnd(longest)))
  })
  return rows.map((_row, at) =>
    padded
      .map((cells) => cells[at])
      .join("  ")
      .trimEnd(),
  )
}
