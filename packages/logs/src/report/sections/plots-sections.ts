import { duration } from "../../quantities.ts"
import type { ReplayResult, RuleResult, Timeline } from "../../replay/result.ts"
import { shownName, time } from "../format.ts"
import { type Html, html } from "../html.ts"
import { binLabel, peakBins } from "../peak-bins.ts"
import { countCell, dataTable, shareCell, type TableRow, textCell } from "../table.ts"
import { limitOf, missingFields, refusalText, remarks, ruleName } from "./rules-section.ts"

/** Returns the section with the requests admitted and refused by all rules over time. */
export function timelineSection({ timeline }: ReplayResult): Html {
  const { admitted, refused, stepMs } = timeline
  if (admitted.length === 0)
    return html`<section aria-labelledby="time"><h2 id="time">Requests over time</h2>
<p>The log contains no requests.</p></section>`
  const rows = admitted.map((requests, i) => ({
    cells: [
      timeCell(timeline, i),
      countCell(requests),
      countCell(refused[i] as number),
      shareCell(refused[i] as number, requests + (refused[i] as number)),
    ],
  }))
  return html`<section aria-labelledby="time"><h2 id="time">Requests over time</h2>
<figure>
<figcaption>Requests per ${step(stepMs)}, all enforced rules together. Times are in UTC.
${legend("admitted", "refused")}</figcaption>
<div class="plot tall" data-plot="requests"></div>
${dataTable("Requests over time as a table", {
  caption: "Requests admitted and refused over time",
  columns: [
    { title: "Time (UTC)" },
    ...["Admitted", "Refused", "Share refused"].map((title) => ({ title, isNumber: true })),
  ],
  rows,
})}
</figure></section>`
}

/** Returns a section with the plots of each rule. Rules that were not judged have no plots. */
export function rulePlotsSection({ rules, timeline }: ReplayResult): Html {
  return html`<section aria-labelledby="each"><h2 id="each">Each rule</h2>
${rules.length === 0 && html`<p>There are no rules.</p>`}
${rules.map(
  (rule, i) => html`<article aria-labelledby="rule-${i}"><h3 id="rule-${i}">${ruleName(rule)}</h3>
<p class="limit">${limitOf(rule)}${remarks(rule)}</p>
${
  rule.judged
    ? html`<p>${refusalText(rule)}</p>
<div class="pair">${refusedFigure(rule, timeline, i)}${rule.peak === undefined && peaksFigure(rule, i)}</div>`
    : html`<p>Not judged, because the log does not contain ${missingFields(rule)}.</p>`
}</article>`,
)}</section>`
}

function refusedFigure(rule: RuleResult, timeline: Timeline, index: number): Html {
  const refused = refusedOf(timeline, rule.name)
  const isZero = refused.every((requests) => requests === 0)
  if (isZero) return html`<figure><figcaption>Refused requests over time: none.</figcaption></figure>`
  return html`<figure>
<figcaption>Requests per ${step(timeline.stepMs)} that the rule refuses. Times are in UTC.
${legend(undefined, "refused")}</figcaption>
<div class="plot" data-plot="refused" data-rule="${index}"></div>
${dataTable("Refused requests as a table", {
  caption: `Requests that ${shownName(rule.name)} refuses over time`,
  columns: [{ title: "Time (UTC)" }, { title: "Refused", isNumber: true }],
  rows: refused.map((requests, i) => ({ cells: [timeCell(timeline, i), countCell(requests)] })),
})}
</figure>`
}

/**
 * Returns the refused requests of a rule over time. Reads own members only, because a rule may be named
 * "constructor".
 */
export function refusedOf({ refusedBy }: Timeline, rule: string): readonly number[] {
  return Object.hasOwn(refusedBy, rule) ? (refusedBy[rule] ?? []) : []
}

function peaksFigure(rule: RuleResult, index: number): Html {
  const bins = peakBins(rule.peaks)
  if (bins.every(({ clients }) => clients === 0))
    return html`<figure><figcaption>Peaks of clients: the rule has no clients.</figcaption></figure>`
  const rows: TableRow[] = bins.map((bin) => ({
    cells: [textCell(binLabel(bin)), countCell(bin.clients), shareCell(bin.clients, rule.clients.seen)],
  }))
  return html`<figure>
<figcaption>Clients by their peak, relative to the limit. The scale is logarithmic.
${legend("within the limit", "above the limit")}</figcaption>
<div class="plot" data-plot="peaks" data-rule="${index}"></div>
${dataTable("Peaks as a table", {
  caption: `Clients of ${shownName(rule.name)} by their peak`,
  columns: [
    { title: "Peak relative to the limit" },
    { title: "Clients", isNumber: true },
    { title: "Share", isNumber: true },
  ],
  rows,
})}
</figure>`
}

/** Returns the legend of the two fills of a plot. */
function legend(admitted: string | undefined, refused: string): Html {
  return html`<span class="legend">${
    admitted !== undefined && html`<span><i class="swatch admitted"></i> ${admitted}</span> `
  }<span><i class="swatch refused"></i> ${refused}</span></span>`
}

function timeCell({ from, stepMs }: Timeline, index: number) {
  return textCell(time(from + index * stepMs))
}

/** Returns the length of a step, such as "minute" or "5 min". */
function step(stepMs: number): string {
  const names: Readonly<Record<number, string>> = {
    1000: "second",
    60000: "minute",
    3600000: "hour",
    86400000: "day",
  }
  return names[stepMs] ?? duration(stepMs)
}
