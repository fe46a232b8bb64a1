/**
 * Functions that stores, adapters, rule sources and other packages that extend Sluice share: messages, checks of
 * options, timers outside of requests, and warnings.
 * @module @sluice/core/kit
 */

export { soundTime, steadyClock } from "./ground/clock.ts"
export { sentenceOf, textOf } from "./ground/errors.ts"
export type { Events } from "./ground/events.ts"
export { hashText } from "./ground/hash.ts"
export { Incident, type IncidentLine } from "./ground/incident.ts"
export type { Awaitable, MaybePromise } from "./ground/maybe-promise.ts"
export {
  clockOption,
  interval,
  loggerOption,
  mustBe,
  type OptionCheck,
  problemAt,
  requireOptions,
  wholeNumber,
} from "./ground/option-checks.ts"
export { show, suggestion } from "./ground/show.ts"
export { after, beforeDeadline, LONGEST_TIMER_MS, outsideRequests, waitOf } from "./ground/time.ts"
export { createWarner, type Warner, warnOncePerLogger } from "./ground/warnings.ts"
export { partitionValues } from "./request/partition.ts"
