import { count, duration } from "../../quantities.ts"
import type { LogResult } from "../../replay/result.ts"
import { shownName, time } from "../format.ts"
import { type Html, type HtmlContent, html } from "../html.ts"
import { countCell, table, textCell } from "../table.ts"

/** Returns the section about the log: its files, times, and the lines that were moved or skipped. */
export function logSection(log: LogResult): Html {
  const facts: readonly [term: string, value: HtmlContent][] = [
    ["Lines", count(log.lines)],
    ["Requests", count(log.requests)],
    ["Clients", count(log.clients)],
    ["First request", log.from === null ? "none" : time(log.from)],
    ["Last request", log.to === null ? "none" : time(log.to)],
    ["Resolution of the times", duration(log.resolutionMs)],
    ["Lines not in the format", count(log.unparsed)],
    ["Lines skipped", count(log.skipped)],
    ["Lines reordered", count(log.reordered)],
    ["Lines too late to sort", count(log.late)],
    ["Refused by another limiter", count(log.tooManyRequests)],
  ]
  return html`<section aria-labelledby="log"><h2 id="log">The log</h2>
<dl class="facts">${facts.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>
${
  log.files.length > 0 &&
  table({
    caption: "Files",
    columns: [{ title: "File" }, { title: "Format" }, { title: "Lines", isNumber: true }],
    rows: log.files.map(({ name, format, lines }) => ({
      cells: [textCell(html`<bdi>${shownName(name)}</bdi>`), textCell(shownName(format)), countCell(lines)],
    })),
  })
}</section>`
}
