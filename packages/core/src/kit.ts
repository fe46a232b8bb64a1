/**
 * What stores, adapters, sources of rules and other packages that extend Sluice share: messages, checks of options, time
 * outside of requests, warnings, and parsed rules.
 * @module @sluice/core/kit
 */

export { soundTime, steadyClock, waitOf } from "./ground/clock.ts"
export { withoutCredentials } from "./ground/credentials.ts"
export { problemWithoutCredentials, sentenceOf, textOf } from "./ground/errors.ts"
export { type Events, SafeEvents } from "./ground/events.ts"
export { hashText } from "./ground/hash.ts"
export { type LossKind, LossLog } from "./ground/loss-log.ts"
export type { Awaitable, MaybePromise } from "./ground/maybe-promise.ts"
export {
  interval,
  mustBe,
  type OptionCheck,
  problemAt,
  requireOptions,
  wholeNumber,
} from "./ground/option-checks.ts"
export { locate, type MemberProblem, show, suggestion } from "./ground/show.ts"
export {
  abortedAfter,
  atDeadline,
  atOnce,
  beforeDeadline,
  held,
  ignore,
  inSlices,
  LONGEST_TIMER_MS,
  outsideRequests,
  Slices,
  type Steps,
  setTimer,
  soon,
  unlessAborted,
} from "./ground/time.ts"
export { createWarner, type Warner, warnOncePerLogger } from "./ground/warnings.ts"
