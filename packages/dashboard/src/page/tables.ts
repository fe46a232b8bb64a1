import type { DecisionOutcome, LimitedClient } from "../recorder/snapshot.ts"
import { OUTCOME_WORDS, type RuleTimeline } from "./counts.ts"
import { h, type PageContent, type PageElement } from "./element.ts"
import { clock, count, date, duration, name } from "./text.ts"

/** A column with its title and its cells. A title that begins with "#" is that of numbers. */
export type TableColumn<Row> = readonly [title: string, cell: (row: Row) => PageContent]

/** Returns a table that scrolls within the page if it is too wide, or the sentence `ifEmpty`. */
export function table<Row>(
  caption: string,
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  ifEmpty: string,
): PageElement {
  if (rows.length === 0) return h("p", {}, ifEmpty)
  const classOf = (title: string) => (title.startsWith("#") ? { class: "n" } : {})
  const head = columns.map(([title]) => h("th", { scope: "col", ...classOf(title) }, title.replace("#", "")))
  const cells = (row: Row): PageContent =>
    columns.map(([title, cell], i) =>
      i === 0 ? h("th", { scope: "row" }, cell(row)) : h("td", classOf(title), cell(row)),
    )
  const parts = [
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, head)),
    h(
      "tbody",
      {},
      rows.map((row) => h("tr", {}, cells(row))),
    ),
  ]
  const attributes = { class: "scroll", role: "group", "aria-label": caption, tabindex: "0" }
  return h("div", attributes, h("table", { class: "wide" }, parts))
}

/** The keys that the search has found. */
let foundKeys: ReadonlySet<string> = new Set()

/** Marks these keys in all tables from now on. */
export function markKeys(keys: readonly string[]): void {
  foundKeys = new Set(keys)
}

/** The counters that many clients share. */
const SHARED: ReadonlyMap<string, string> = new Map([
  ["", "all clients together"],
  ["@shared", "all clients without the field"],
])

/** Returns the key of a client for display. */
export function keyText(key: string): string {
  return SHARED.get(key) ?? name(key)
}

/** Returns the key of a client, with a mark if the search has found it. A click on it searches for the client. */
export function keyCell(key: string): PageContent {
  const shown = h("button", { type: "button", class: "key", "data-client": key }, h("bdi", {}, keyText(key)))
  return foundKeys.has(key) ? h("mark", {}, shown, " ← found") : shown
}

/** The reasons of refusals in words. */
export const REASONS: Readonly<Record<string, string>> = {
  quota: "limit reached",
  "in-flight": "too many in progress",
  penalty: "refused too often",
  blocked: "blocked by an operator",
  cost: "costs too much",
  denied: "on the deny list",
  "missing-field": "field missing",
  "store-failure": "store or rules missing",
}

/** Returns the columns about refused clients. `clientOf` returns the client of a row, if it was refused. */
export function refusedColumns<Row>(
  atMs: number,
  clientOf: (row: Row) => LimitedClient | undefined,
): readonly TableColumn<Row>[] {
  const of = (cell: (client: LimitedClient) => string) => (row: Row) => {
    const client = clientOf(row)
    return client === undefined ? "–" : cell(client)
  }
  return [
    [
      "#Refusals",
      of(({ refusals, error }) => (error > 0 ? `${count(refusals - error)} to ` : "") + count(refusals)),
    ],
    ["Latest", of(({ lastMs }) => clock(lastMs))],
    ["Reason", of(({ reason }) => REASONS[reason] ?? reason)],
    ["May try again", of(({ untilMs }) => until(untilMs, atMs))],
  ]
}

const DAY_MS = 86_400_000

/** Returns when a wait ends, as a duration and a time of day. A wait of a day or more also has the date. */
export function until(untilMs: number | null, atMs: number): string {
  if (untilMs === null) return "never"
  if (untilMs <= atMs) return "now"
  const day = untilMs - atMs < DAY_MS ? "" : `${date(untilMs + 999)} `
  return `in ${duration(untilMs - atMs)}, ${day}${clock(untilMs + 999)}`
}

/** Returns a plot with its legend, and below it a table that a reader can open. */
export function figure(caption: string, id: string, timeline: RuleTimeline): PageElement {
  const { counts, from, stepMs } = timeline
  const swatch = (outcome: DecisionOutcome, words: string): PageContent =>
    h("span", {}, h("i", { class: `swatch ${outcome}` }), ` ${words}`)
  const outcomes = (Object.keys(OUTCOME_WORDS) as DecisionOutcome[]).filter((outcome) =>
    counts[outcome].some((value) => value > 0),
  )
  // Hundreds of rows take time in each update, so only rows that are visible are written.
  const isOpen = document.getElementById(id)?.hasAttribute("open") === true
  const steps = isOpen ? [...counts.admitted.keys()].reverse() : []
  const busy = steps.filter((step) => outcomes.some((outcome) => counts[outcome][step] !== 0))
  const columns = outcomes.map(
    (outcome): TableColumn<number> => [
      `#${OUTCOME_WORDS[outcome]}`,
      (step) => count(counts[outcome][step] ?? 0),
    ],
  )
  const time: TableColumn<number> = ["Time", (step) => clock(from + step * stepMs)]
  const refused = counts.shadowed.some((value) => value > 0) ? "refused, or would be" : "refused"
  return h(
    "figure",
    {},
    h(
      "figcaption",
      {},
      caption,
      h("span", { class: "legend" }, swatch("admitted", "admitted"), swatch("refused", refused)),
    ),
    { ...h("div", { class: "frame", "data-key": id }), plot: { label: caption, steps: timeline } },
    h(
      "details",
      { id, class: "data" },
      h("summary", {}, "The same as a table"),
      isOpen &&
        table(`${caption}. Spans without requests are left out.`, busy, [time, ...columns], "No requests."),
    ),
  )
}
