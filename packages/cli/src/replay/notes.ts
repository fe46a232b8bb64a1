import type { ParsedRule } from "@sluice/core/replay"
import { count } from "../commands/check.ts"
import type { LogSummary } from "../logs/log.ts"
import type { ReplayResult, RuleResult } from "./result.ts"

/** What the notes are about, in addition to the result. */
export interface NoteContext {
  readonly logs: LogSummary
  readonly evictions: number
  readonly rules: readonly ParsedRule[]
}

/** Returns remarks on what a result means and does not mean, the most important first. */
export function notesOn(
  { rules, live }: Pick<ReplayResult, "rules" | "live">,
  { logs, evictions, rules: parsed }: NoteContext,
): readonly string[] {
  return [
    "The log shows what clients did without these rules. A refused client may retry, slow down or leave.",
    ...(evictions > 0
      ? [
          `The result is wrong: ${count(evictions, "counter")} had no room in memory. Replay a part of the logs.`,
        ]
      : []),
    ...(live !== undefined && live.differences.length > 0
      ? [
          "The log begins with clients that had used units before; until a window has passed, verdicts may differ.",
        ]
      : []),
    ...rules.flatMap((rule) => ruleNotes(rule, logs.resolutionMs)),
    ...parsed.flatMap(throttleNote),
    ...(logs.tooManyRequests > 0
      ? [
          `${count(logs.tooManyRequests, "request")} had status 429: another limiter refused them. They count as demand; --without-status 429 skips them.`,
        ]
      : []),
    ...(logs.late > 0
      ? [
          `${count(logs.late, "line")} came too late to be sorted, and count at the time of the line before. Raise --reorder.`,
        ]
      : []),
  ]
}

function ruleNotes(rule: RuleResult, resolutionMs: number): string[] {
  const { name, judged, missing, tooShort, window, spread, clients, shadow } = rule
  return [
    ...(judged
      ? []
      : [
          `${name}: not judged: the log does not have ${missing.join(" and ")}. Log it, or read it with --map.`,
        ]),
    ...(tooShort && judged
      ? [`${name}: log too short: its window of ${window} is longer than a third of the log.`]
      : []),
    ...(spread === undefined
      ? []
      : [
          `${name}: pessimistic: the log's times have a resolution of ${resolutionMs / 1_000} s, which makes bursts look worse. ` +
            `With the lines of each second spread evenly, it refuses ${spread.refused} requests of ${count(spread.clients, "client")}.`,
        ]),
    ...(clients.bystanders > 0
      ? [
          `${name}: ${count(clients.bystanders, "client")} of ${clients.refused} would not exceed the limit alone.`,
        ]
      : []),
    ...(shadow
      ? [`${name}: shadow rule: it refuses nothing; the numbers are what it would have refused.`]
      : []),
    ...slightlyOver(rule),
  ]
}

/** Returns a hint at a higher limit if some clients are only slightly over it. */
function slightlyOver({ name, algorithm, ratios, limit, clients }: RuleResult): string[] {
  const [slightly] = ratios
  if (slightly === undefined || slightly.clients === 0 || slightly.upTo === null) return []
  // The peaks of an unshared counter do not depend on the limit, so the number of refused clients is known.
  if (clients.bystanders > 0 || algorithm !== "sliding-window") return []
  const higher = Math.ceil(limit * slightly.upTo)
  if (higher <= limit) return []
  return [
    `${name}: ${count(slightly.clients, "client")} ${slightly.clients === 1 ? "is" : "are"} only slightly over the limit; ` +
      `a limit of ${higher} would refuse ${count(clients.refused - slightly.clients, "client")} instead of ${clients.refused} (see "sluice rules suggest").`,
  ]
}

function throttleNote({ name, throttle }: ParsedRule): string[] {
  const queue = throttle.kind === "queue" ? throttle : throttle.kind === "hard" ? undefined : throttle.queue
  // A leaky bucket itself delays requests, and its line has no room by default.
  if (throttle.kind === "hard" || (queue !== undefined && queue.maxWaiting === 0)) return []
  if (throttle.kind === "elastic" || queue !== undefined)
    return [`${name}: replayed as hard throttling, because a log shows neither load nor patience.`]
  return []
}
