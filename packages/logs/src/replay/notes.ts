import { releases } from "@sluice/core/stores"
import type { ParsedRule } from "@sluice/rules"
import { count, counted } from "../quantities.ts"
import type { LogSummary } from "../reading/log.ts"
import { lineNotes, MAIN_NOTE, proxyNote } from "./log-notes.ts"
import type { LogsReplay } from "./logs-replay.ts"
import type { ReplayRun } from "./replay-run.ts"
import type { LiveComparison, RuleResult } from "./result.ts"

/** Returns remarks on what a result means and does not mean, the most important first. */
export function notesOn(
  results: readonly RuleResult[],
  live: LiveComparison | undefined,
  logs: LogSummary,
  { main, forwarded }: LogsReplay,
): readonly string[] {
  const { rules } = main.replay
  return [
    MAIN_NOTE,
    ...(live !== undefined && live.different > 0
      ? [
          "Some clients had used units before the log begins, so verdicts may differ until a window has passed.",
        ]
      : []),
    ...results.flatMap((result, at) => ruleNotes(result, rules[at] as ParsedRule, logs.resolutionMs)),
    ...results.flatMap(({ name }) =>
      main
        .partlyMissingOf(name)
        .map(
          ({ field, requests }) =>
            `${name}: partly judged: ${counted(requests, "request")} of ${main.seen} cannot have ${field}.`,
        ),
    ),
    ...rules.flatMap((rule) => unitNote(rule, main)),
    ...onlyRuleNotes(results, rules),
    ...shadowNote(results),
    ...rules.flatMap(throttleNote),
    ...proxyNote(forwarded),
    ...addressNote(main),
    ...lineNotes(logs),
  ]
}

function addressNote({ withoutAddress, seen, countsAddresses }: ReplayRun): string[] {
  if (withoutAddress === 0 || withoutAddress === seen || !countsAddresses) return []
  return [
    `Without an address: ${count(withoutAddress)} of ${count(seen)} requests. Rules by address count them as one client.`,
  ]
}

function ruleNotes(result: RuleResult, rule: ParsedRule, resolutionMs: number): string[] {
  const { name, judged, missing, tooShort, window, spread, clients, reasons } = result
  if (releases(rule))
    return [`${name}: not judged: a log does not show when requests end. Try it as a shadow rule in the app.`]
  const others = Object.entries(reasons).filter(([reason]) => reason !== "quota")
  return [
    ...(judged
      ? []
      : [
          `${name}: not judged: the log does not have ${missing.join(" and ")}. Log it, or read it with --map.`,
        ]),
    ...(tooShort && judged
      ? [
          `${name}: log too short: its window of ${window.replace(/^(?=(?:day|week|month|year)$)/, "a ")} is longer than a third of the log.`,
        ]
      : []),
    ...(spread === undefined
      ? []
      : [
          `${name}: pessimistic: the log's times have a resolution of ${resolutionMs / 1_000} s, which makes bursts look worse. ` +
            `With the lines of each second spread evenly, it refuses ${spread.refused === 0 ? "no request" : `${counted(spread.refused, "request")} of ${counted(spread.clients, "client")}`}.`,
        ]),
    ...(clients.bystanders > 0
      ? [
          `${name}: ${counted(clients.bystanders, "client")} of ${clients.refused} would not exceed the limit alone.`,
        ]
      : []),
    ...(others.length > 0
      ? [
          `${name}: not refused for its quota: ${others.map(([reason, number]) => `${number} (${reason})`).join(", ")}.`,
        ]
      : []),
    ...(rule.cost > 1 ? [`${name}: a request takes ${rule.cost} units.`] : []),
  ]
}

/**
 * Returns a hint at a higher limit if some clients are only slightly over it. The peaks of a single rule with the
 * default algorithm do not depend on its limit, so the number of refused clients under another limit is known. With
 * several rules or another algorithm, this number is unknown.
 */
function onlyRuleNotes(results: readonly RuleResult[], rules: readonly ParsedRule[]): string[] {
  const [result] = results
  const [rule] = rules
  const [slightly] = result?.ratios ?? []
  if (result === undefined || rule === undefined || slightly === undefined || results.length > 1) return []
  const { name, limit, clients, reasons } = result
  const isQuota = Object.keys(reasons).every((reason) => reason === "quota")
  const isPlain =
    rule.algorithm === "sliding-window" &&
    rule.buckets === undefined &&
    rule.overrides === undefined &&
    rule.penalty === undefined &&
    !rule.countRejected &&
    rule.throttle.kind !== "soft"
  const higher = Math.ceil(limit * (slightly.upTo as number))
  if (!isQuota || !isPlain || clients.bystanders > 0 || slightly.clients === 0 || higher <= limit) return []
  return [
    `${name}: ${counted(slightly.clients, "client")} ${slightly.clients === 1 ? "is" : "are"} only slightly over the limit; ` +
      `a limit of ${higher} would refuse ${counted(clients.refused - slightly.clients, "client")} instead of ${clients.refused} (see "sluice rules suggest").`,
  ]
}

/** Returns a note if some requests have no amount of the unit that a rule counts. */
function unitNote({ name, counts }: ParsedRule, { withoutUnit }: ReplayRun): string[] {
  const requests = withoutUnit.get(counts)
  if (requests === undefined) return []
  return [
    `${name}: counts ${counts}, but ${counted(requests, "request")} without a whole number in the field ${counts} took 1. ` +
      `Log it, or read it with --map ${counts}=….`,
  ]
}

function shadowNote(results: readonly RuleResult[]): string[] {
  const names = results.flatMap(({ name, shadow }) => (shadow ? name : []))
  if (names.length === 0) return []
  return [
    `Shadow rules refuse nothing, so their numbers are what they would have refused: ${names.join(", ")}.`,
  ]
}

function throttleNote({ name, throttle }: ParsedRule): string[] {
  const queue = throttle.kind === "queue" ? throttle : throttle.kind === "hard" ? undefined : throttle.queue
  // A leaky bucket delays requests itself. By default, no request can wait in its line.
  const isHeld = queue !== undefined && queue.maxWaiting > 0
  if (throttle.kind === "elastic")
    return [`${name}: replayed as hard throttling, because a log does not show the load.`]
  return isHeld
    ? [`${name}: nothing waits in a replay, because a log does not show how long clients wait.`]
    : []
}
