/**
 * What packages that extend Sluice share with it. Stores use the guard of stores, listeners, refunds, checks that are
 * decided together, the numbers of a policy, and time outside of requests. Adapters use the facts of Node servers, the guard
 * that throws, and the watch of the order of mounts. Sources of rules use documents and the start of a call. All use
 * messages and checks of options.
 * @module @sluice/core/kit
 */

export { timeUnitMs } from "./algorithms/exact-counts.ts"
export { countsByPart } from "./algorithms/kinds.ts"
export { bucketMsOf, bucketsOf } from "./algorithms/sub-windows.ts"
export { soundTime, steadyClock, waitOf, waitUnheld } from "./ground/clock.ts"
export { problemWithoutCredentials, sentenceOf, textOf } from "./ground/errors.ts"
export { SafeEvents } from "./ground/events.ts"
export { hashText } from "./ground/hash.ts"
export { type LossKind, LossLog } from "./ground/loss-log.ts"
export {
  interval,
  mustBe,
  type OptionCheck,
  problemAt,
  requireOptions,
  wholeNumber,
} from "./ground/option-checks.ts"

export { capacityOf, ceilingOf } from "./ground/policy.ts"
export { makeStringsQuick } from "./ground/quick-strings.ts"
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
export { createThrowingGuard } from "./http/guard/create-guard.ts"
export type { MountedLayer } from "./http/guard/late-place.ts"
export { MountOrder } from "./http/guard/mount-order.ts"
export { type NodeRequest, ServerFacts, type ServerRequest } from "./request/server-facts.ts"
export { BoundedTable, type TableEntry } from "./stores/bounded-table.ts"
export { chargeable } from "./stores/counters.ts"
export { foreignStore, guardedStore } from "./stores/foreign-store.ts"
export { refundsOf } from "./stores/refunds-of.ts"
export { RoundTrips } from "./stores/round-trips.ts"
export { BACKGROUND_REFUND_MS } from "./stores/store.ts"
export { storeErrorOf } from "./stores/store-error.ts"
export { StoreListeners } from "./stores/store-listeners.ts"
export {
  countsRefusals,
  type PendingCheck,
  statesAfterRefusal,
  takeTogether,
} from "./stores/take-together.ts"
