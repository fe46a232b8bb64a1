import { columns, type OutputLine, tinted } from "../line.ts"
import { estimateText, logText, nextText, numberText, shareText } from "./phrases.ts"
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

/** Returns a result as lines for people. */
export function suggestLines(result: SuggestResult): OutputLine[] {
  const { log, clients, groups, by, notes } = result
  const [limits = "", ...others] = notes
  const rows = groups.flatMap(({ name, windows }) =>
    windows.flatMap(({ window, candidates }) => candidates.map((each) => rowOf(name, window.text, each))),
  )
  const without = groups.flatMap(({ windows }) =>
    windows.flatMap(({ window, withoutLargest = [] }) =>
      withoutLargest.map((each) => rowOf("without the 10 largest", window.text, each)),
    ),
  )
  const formats = [...new Set(log.files.map(({ format }) => format))].join(" and ")
  return [
    tinted("quiet", limits),
    tinted(
      "strong",
      `${logText(log)}: ${formats}, ${numberText(log.requests)} requests, ${estimateText(clients)} clients by ${by.join(" and ")}; ` +
        `${numberText(log.unparsed)} unparsed, ${numberText(log.late)} late`,
    ),
    ...columns([HEADINGS, ...rows, ...without]),
    ...others.map((note) => tinted("quiet", note)),
  ]
}

function rowOf(group: string, window: string, candidate: SuggestCandidate): string[] {
  const { name, limit, clients, clientShare, requests, requestShare, nextPeak, isRule } = candidate
  return [
    group,
    window,
    name,
    numberText(limit),
    shareText(clients, clientShare),
    requests === null ? "" : shareText(requests, requestShare ?? 0),
    nextPeak === null ? "none" : nextText(limit, nextPeak).replace("the next larger client reaches ", ""),
    isRule ? "<- rule" : "",
  ]
}
