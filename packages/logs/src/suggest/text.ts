import { count } from "../quantities.ts"
import { type TextLine, tinted } from "../text-line.ts"
import { clientsText, logText, nextText, shareText, shortened } from "./phrases.ts"
import type { SuggestCandidate, SuggestResult } from "./result.ts"

const HEADINGS = [
  "requests",
  "window",
  "candidate",
  "limit",
  "clients refused",
  "requests refused",
  "next larger client",
  "",
]

/** Returns suggested limits as lines of text. */
export function suggestLines(result: SuggestResult): TextLine[] {
  const { log, clients, groups, by, notes, largest } = result
  const [mainNote = "", ...others] = notes
  const rows = groups.flatMap(({ name, windows }) =>
    windows.flatMap(({ window, candidates }) => candidates.map((each) => rowOf(name, window.text, each))),
  )
  const without = groups.flatMap(({ windows }) =>
    windows.flatMap(({ window, withoutLargest = [] }) =>
      withoutLargest.map((each) => rowOf(`without the largest ${largest.clients.length}`, window.text, each)),
    ),
  )
  const formats = [...new Set(log.files.map(({ format }) => format))].join(" and ")
  return [
    tinted("quiet", mainNote),
    tinted(
      "strong",
      `${logText(log)}: ${formats}, ${count(log.requests)} requests, ${clientsText(clients)} by ${by.join(" and ")}; ` +
        `${count(log.unparsed)} unparsed, ${count(log.late)} late`,
    ),
    ...columns([HEADINGS, ...rows, ...without]),
    ...others.map((note) => tinted("quiet", note)),
    ...largest.clients.map(({ client, requests }) =>
      tinted("quiet", `large client: ${shortened(client)} (${count(requests)} requests)`),
    ),
  ]
}

function rowOf(group: string, window: string, candidate: SuggestCandidate): string[] {
  const { name, limit, clients, clientShare, requests, requestShare, nextPeak, isRule } = candidate
  return [
    group,
    window,
    name,
    count(limit),
    shareText(clients, clientShare),
    requests === null ? "" : shareText(requests, requestShare as number),
    nextPeak === null ? "none" : nextText(limit, nextPeak).replace("the next larger client reaches ", ""),
    isRule ? "<- rule" : "",
  ]
}

/** Returns rows as columns of equal width. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = HEADINGS.map((_, at) => Math.max(...rows.map((row) => (row[at] as string).length)))
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] as number))
      .join("  ")
      .trimEnd(),
  )
}
