import { count, duration, percent } from "../quantities.ts"
import { lineNotes, MAIN_NOTE, proxyNote } from "../replay/log-notes.ts"
import { isPessimistic } from "../replay/logs-replay.ts"
import type { ClientDemand } from "./demand.ts"
import type { SuggestGroup, SuggestResult } from "./result.ts"

/** Above this share of requests, the largest clients may be an attack. */
export const LARGE_SHARE = 0.5

const WEEKLY_MS = 3 * 86_400_000

/** Returns remarks on what a suggestion means and does not mean, the most important first. */
export function notesOn(
  result: Omit<SuggestResult, "notes">,
  { missing, withoutField, proxies }: Pick<ClientDemand, "missing" | "withoutField" | "proxies">,
): readonly string[] {
  const { log, by, groups, capacity, algorithm } = result
  const [all] = groups
  return [
    MAIN_NOTE,
    ...(log.to - log.from < WEEKLY_MS
      ? [
          `The log covers ${duration(log.to - log.from)}. Less than three days miss the weekly rhythm, and a quiet day suggests limits for quiet days.`,
        ]
      : []),
    ...largestNote(result),
    ...(by.includes("ip")
      ? ["Users behind a NAT or a company proxy share an address and count as one client."]
      : []),
    ...samplingNote(result),
    ...littleDataNote(result),
    ...(withoutField > 0
      ? [
          `${count(withoutField)} requests do not have ${by.join(" and ")}. Rules count them by address, or all together as one client, which may set a limit.`,
        ]
      : []),
    ...proxyNote(proxies),
    ...(all as SuggestGroup).windows.flatMap(({ window, tooShort }) => [
      ...(tooShort
        ? [`The window of ${window.text} is longer than a third of the log, so its peaks are too low.`]
        : []),
      ...(isPessimistic(window.ms, log.resolutionMs)
        ? [
            `The log's times have a resolution of ${log.resolutionMs / 1_000} s, which makes bursts look worse: limits per ${window.per} are higher than needed.`,
          ]
        : []),
    ]),
    ...groups.flatMap(({ name, failed, requests }) =>
      failed === undefined
        ? []
        : [`${name} looks like a login: ${count(failed)} of ${count(requests)} requests failed.`],
    ),
    ...groups.flatMap((group) => withoutCandidates(group, algorithm)),
    ...missing.map(
      ({ group, field }) =>
        `${group}: some requests do not have ${field}, so they are not counted. Log it, or read it with --map.`,
    ),
    ...lineNotes(log),
    ...(capacity === undefined
      ? []
      : [
          `${count(capacity.limit)} per ${capacity.window.per} for the whole service is your figure: a log cannot show what the service can handle. ` +
            `Its highest demand was ${count(capacity.peak)}.`,
        ]),
    ...(all?.windows.some(({ candidates }) => candidates.some(({ requests }) => requests === null))
      ? [
          "Refused requests are not known, because standard input can be read only once. Give files to count them.",
        ]
      : []),
  ]
}

/**
 * Returns the note that a few clients make most of the requests. Notes must not contain the names of clients, because
 * notes are also written to the rules file.
 */
function largestNote({ largest, log, groups, by }: Omit<SuggestResult, "notes">): string[] {
  const [first] = largest.clients
  if (first === undefined) return []
  const isOne = largest.clients.length === 1
  const limits = (groups[0] as SuggestGroup).windows.flatMap(
    ({ window, candidates, withoutLargest = [] }) => {
      const rule = candidates.find(({ isRule }) => isRule)
      const other = withoutLargest.find(({ name }) => name === rule?.name)
      return rule === undefined || other === undefined
        ? []
        : [`${count(rule.limit)} with and ${count(other.limit)} without, per ${window.per}`]
    },
  )
  const isProxy = isOne && by.includes("ip") && PRIVATE.test(first.client)
  return [
    `${isOne ? "One client makes" : `${largest.clients.length} clients make`} ${percent(largest.share, 1)} of the ` +
      `${count(log.requests)} requests. ` +
      (isProxy
        ? "It has a private address. If it is a proxy, log the header in which it reports the client, and give --trusted-proxies."
        : "The log may show an attack.") +
      (limits.length === 0
        ? ""
        : ` Limits ${isOne ? "with it and without it" : "with them and without them"}: ${limits.join("; ")}.`),
  ]
}

/** Addresses of private networks (RFC 1918, RFC 4193) and of this machine. */
const PRIVATE = /^(?:10\.|127\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|f[cd]|::1)/

function samplingNote({ sampledOneOf, clients }: Omit<SuggestResult, "notes">): string[] {
  if (sampledOneOf === 1) return []
  const error = percent(clients.error, clients.value)
  return [
    `There are about ${count(clients.value)} clients (± ${error}), more than --max-clients. ` +
      `One of ${count(sampledOneOf)} clients and the 1,000 largest were counted. "±" is the error in 95 of 100 cases. Logins that appear later are not found.`,
  ]
}

/** Returns a note if the share of clients that may be refused is less than one client. */
function littleDataNote({ groups, refuseAtMost }: Omit<SuggestResult, "notes">): string[] {
  const small = groups.filter(({ clients }) => refuseAtMost * clients.value < 1)
  if (small.length === 0 || refuseAtMost === 0) return []
  const names = small.map(({ name, clients }) => `${name} (${count(clients.value)})`).join(", ")
  return [
    `Too little data: one client is more than ${Number((100 * refuseAtMost).toFixed(4))}% of the clients of ${names}. ` +
      "Single clients decide these limits. Read a longer log, or raise --refuse-at-most.",
  ]
}

function withoutCandidates({ name, windows }: SuggestGroup, algorithm: string): string[] {
  return windows.flatMap(({ window, candidates }) =>
    candidates.length > 0
      ? []
      : [
          `${name}: no limit per ${window.per}, because ${algorithm} cannot count more than 1,000 units; use sliding-window-strict.`,
        ],
  )
}
