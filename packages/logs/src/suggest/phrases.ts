import { count, duration, percent } from "../quantities.ts"
import type { EstimatedNumber, SuggestCandidate, SuggestLog } from "./result.ts"

const LONGEST_NAME = 60

/** Returns a number, with its error if it is an estimate: "1,020 ± 40". */
function estimateText({ value, error }: EstimatedNumber): string {
  return error === 0 ? count(value) : `${count(value)} ± ${count(Math.ceil(error))}`
}

/** Returns a number of clients: "1 client", "1,020 ± 40 clients". */
export function clientsText(clients: EstimatedNumber): string {
  return `${estimateText(clients)} ${nounFor("client", clients)}`
}

/** Returns a number with a share: "23 (0.02%)". */
export function shareText(number: EstimatedNumber, share: number): string {
  return `${estimateText(number)} (${percent(share, 1)})`
}

/** Returns a noun for a number: "client" for 1. */
function nounFor(noun: string, { value, error }: EstimatedNumber): string {
  return value === 1 && error === 0 ? noun : `${noun}s`
}

/** Returns a shortened name from a log. */
export function shortened(name: string): string {
  if (name === "") return "(no name)"
  return name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME)}…`
}

/** Returns the name of the log, its days and its length: "access.log, 2025-06-03, 50 minutes". */
export function logText({ files, from, to }: SuggestLog): string {
  const [first] = files
  const name =
    files.length === 1 ? shortened((first as (typeof files)[number]).name) : `${files.length} files`
  const [firstDay, lastDay] = [dayOf(from), dayOf(to)]
  return `${name}, ${firstDay === lastDay ? firstDay : `${firstDay} to ${lastDay}`}, ${duration(to - from)}`
}

/**
 * Returns the effect that a limit would have had: "60 per minute would have refused 23 clients (0.02%) and 18.2% of
 * …".
 */
export function effectText(candidate: SuggestCandidate, per: string): string {
  const { limit, clients, clientShare, requests, requestShare, nextPeak } = candidate
  const refused =
    `${count(limit)} per ${per} would have refused ${estimateText(clients)} ${nounFor("client", clients)} ` +
    `(${percent(clientShare, 1)})`
  const ofRequests =
    requests === null
      ? ""
      : ` and ${estimateText(requests)} ${nounFor("request", requests)} (${percent(requestShare as number, 1)})`
  return `${refused}${ofRequests}; ${nextText(limit, nextPeak)}.`
}

/** Returns a phrase about the distance to the next larger client. */
export function nextText(limit: number, nextPeak: number | null): string {
  if (nextPeak === null) return "no client is above it"
  return `the next larger client reaches ${count(nextPeak)} (${(nextPeak / limit).toFixed(2)}x)`
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
