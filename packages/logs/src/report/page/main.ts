import { DATA_ID, type PageData } from "../page-data.ts"
import { drawPeaks } from "./peaks-plot.ts"
import { makeSortable } from "./sort-table.ts"
import { drawRefused, drawRequests } from "./timeline-plot.ts"

// The script of the report. The script adds plots to empty elements and buttons to headers. The page is complete
// without the script.

const data: PageData = JSON.parse(document.getElementById(DATA_ID)?.textContent ?? "")

for (const target of document.querySelectorAll<HTMLElement>("[data-plot]")) {
  const rule = data.rules[Number(target.dataset.rule)]
  if (target.dataset.plot === "requests") drawRequests(target, data.timeline)
  else if (rule === undefined) continue
  else if (target.dataset.plot === "refused") drawRefused(target, data.timeline, rule)
  else drawPeaks(target, rule)
}
for (const table of document.querySelectorAll<HTMLTableElement>("table[data-sortable]")) makeSortable(table)
