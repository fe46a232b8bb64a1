import { counted } from "../../quantities.ts"
import type { RefusedClient } from "../../replay/result.ts"
import { alignedRatio, shownName, time } from "../format.ts"
import { type Html, html } from "../html.ts"
import { countCell, shareCell, table, textCell } from "../table.ts"

const REFUSED_COLUMN = 3
/** The style sheet does not print more rows of a sortable table. */
const PRINTED_ROWS = 100

/** Returns the section with the refused clients, which the script of the page can sort. */
export function clientsSection(clients: readonly RefusedClient[]): Html {
  return html`<section aria-labelledby="clients"><h2 id="clients">Refused clients</h2>
${
  clients.length === 0
    ? html`<p>No client was refused.</p>`
    : html`${table({
        caption: `${counted(clients.length, "client")} that the rules refused most often`,
        columns: [
          { title: "Client" },
          { title: "Rule" },
          ...["Requests", "Refused", "Share", "Peak"].map((title) => ({ title, isNumber: true })),
          { title: "First refused (UTC)" },
          { title: "Last refused (UTC)" },
        ],
        rows: clients.map(rowOf),
        sortedBy: REFUSED_COLUMN,
      })}${clients.length > PRINTED_ROWS && html`<p class="hint only-print">The printed table ends after ${PRINTED_ROWS} clients.</p>`}`
}</section>`
}

function rowOf(client: RefusedClient) {
  const { rule, shadow, requests, refused, peak, firstRefused, lastRefused } = client
  return {
    cells: [
      {
        shown: html`<bdi>${shownName(client.client)}</bdi>`,
        value: shownName(client.client),
        className: "name",
      },
      textCell(html`<bdi>${shownName(rule)}</bdi>${shadow && html` <small>(shadow)</small>`}`),
      countCell(requests),
      countCell(refused),
      shareCell(refused, requests),
      { shown: alignedRatio(peak), value: peak },
      { shown: time(firstRefused), value: firstRefused, className: "time" },
      { shown: time(lastRefused), value: lastRefused, className: "time" },
    ],
  }
}
