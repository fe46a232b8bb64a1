import { count, counted } from "../../quantities.ts"
import type { AlgorithmResult, BoundResult, Comparison, LiveComparison } from "../../replay/result.ts"
import { shownName, visible } from "../format.ts"
import { type Html, type HtmlContent, html } from "../html.ts"
import { type Cell, countCell, table, textCell } from "../table.ts"

/** Returns the section about the differences between the rules and other rules. */
export function againstSection({ file, newlyRefused, noLongerRefused, rules, clients }: Comparison): Html {
  // Omit a rule that was not judged: it has no changes, and a row of zeros would suggest that it refuses nothing.
  const changed = rules.filter((rule) => rule.newlyRefused + rule.noLongerRefused > 0)
  return html`<section aria-labelledby="against"><h2 id="against">Compared with <bdi>${shownName(file)}</bdi></h2>
<p>Newly refused: ${counted(newlyRefused.requests, "request")}. Clients that were never refused before: ${count(newlyRefused.clients)}.
No longer refused: ${counted(noLongerRefused.requests, "request")}. Clients that are never refused now: ${count(noLongerRefused.clients)}.</p>
${
  changed.length > 0 &&
  table({
    caption: "Requests by rule",
    columns: [{ title: "Rule" }, ...numbers("Newly refused", "No longer refused")],
    rows: changed.map((rule) => ({
      cells: [name(rule.name), countCell(rule.newlyRefused), countCell(rule.noLongerRefused)],
    })),
  })
}${
  clients.length > 0 &&
  table({
    caption: "Clients that change most: refused requests",
    columns: [{ title: "Client" }, ...numbers("Before", "After", "Change")],
    rows: clients.map(({ client, before, after }) => ({
      cells: [
        { ...name(client), className: "name" },
        countCell(before),
        countCell(after),
        { shown: signed(after - before), value: after - before },
      ],
    })),
  })
}</section>`
}

/** Returns the section with the result of each rule under each algorithm, side by side. */
export function algorithmsSection(results: readonly AlgorithmResult[]): Html {
  const algorithms = [...new Set(results.map(({ algorithm }) => algorithm))]
  const rules = [...new Set(results.map(({ rule }) => rule))]
  const cellsOf = (rule: string, algorithm: string): Cell[] => {
    const result = results.find((each) => each.rule === rule && each.algorithm === algorithm)
    if (result?.refused === undefined)
      return [{ shown: visible(result?.problem ?? "not replayed"), span: 2, className: "remark" }]
    return [
      countCell(result.refused),
      result.clients === undefined ? textCell("–") : countCell(result.clients),
    ]
  }
  return html`<section aria-labelledby="algorithms"><h2 id="algorithms">Algorithms compared</h2>
${table({
  caption: "Requests and clients that each rule refuses under each algorithm",
  columns: [
    { title: "Rule" },
    ...algorithms.flatMap((algorithm) =>
      numbers(`${shownName(algorithm)}: refused`, `${shownName(algorithm)}: clients`),
    ),
  ],
  rows: rules.map((rule) => ({
    cells: [name(rule), ...algorithms.flatMap((algorithm) => cellsOf(rule, algorithm))],
  })),
})}</section>`
}

/** Returns the section that compares the replay with the verdicts in the log. */
export function liveSection({ compared, different, differences }: LiveComparison): Html {
  return html`<section aria-labelledby="live"><h2 id="live">Compared with the verdicts in the log</h2>
<p>${counted(compared, "request")} in the log ${compared === 1 ? "has" : "have"} a verdict.
${different === 0 ? "The replay agrees with all of them." : differenceText(different, differences.length)}</p>
${
  differences.length > 0 &&
  table({
    caption: "Differences",
    columns: [{ title: "File" }, ...numbers("Line"), { title: "In the log" }, { title: "Replayed" }],
    rows: differences.map(({ file, line, live, replayed }) => ({
      cells: [name(file), countCell(line), textCell(visible(live)), textCell(visible(replayed))],
    })),
  })
}</section>`
}

function differenceText(different: number, shown: number): string {
  const lines = different > shown ? `, of which the first ${count(shown)} are here` : ""
  return `The replay differs in ${counted(different, "line")}${lines}:`
}

/** Returns the section with the bounds that were given, and whether they hold. */
export function boundsSection(bounds: readonly BoundResult[]): Html {
  return html`<section aria-labelledby="bounds"><h2 id="bounds">Bounds</h2>
${table({
  caption: "Bounds and their values",
  columns: [{ title: "Bound" }, { title: "Value", isNumber: true }, { title: "Result" }],
  rows: bounds.map(({ bound, value, holds }) => ({
    cells: [
      textCell(html`<code>${visible(bound)}</code>`),
      textCell(visible(value)),
      textCell(
        holds ? html`<span class="good">✓ holds</span>` : html`<strong class="bad">✗ exceeded</strong>`,
      ),
    ],
  })),
})}</section>`
}

function name(text: string): Cell {
  return { shown: html`<bdi>${shownName(text)}</bdi>` }
}

function numbers(...titles: readonly HtmlContent[]): { title: HtmlContent; isNumber: true }[] {
  return titles.map((title) => ({ title, isNumber: true }))
}

function signed(value: number): string {
  return value > 0 ? `+${count(value)}` : count(value).replace("-", "−")
}
