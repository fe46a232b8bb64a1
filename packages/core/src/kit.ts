/**
 * What packages that extend Sluice share with it. Stores use the guard of stores, the listeners and refunds, the numbers
 * of a policy, and time outside of requests. All of them use messages, and warnings that are logged once.
 * @module @sluice/core/kit
 */

export { timeUnitMs } from "./algorithms/exact-counts.ts"
export { bucketMsOf, bucketsOf } from "./algorithms/sub-windows.ts"
export { sentenceOf, textOf } from "./ground/errors.ts"
export { hashText } from "./ground/hash.ts"
export { ceilingOf } from "./ground/policy.ts"
export { makeStringsQuick } from "./ground/quick-strings.ts"
export { show, suggestion } from "./ground/show.ts"
export {
  atDeadline,
  beforeDeadline,
  LONGEST_TIMER_MS,
  outsideRequests,
  setTimer,
  soon,
} from "./ground/time.ts"
export { warnOncePerLogger } from "./ground/warnings.ts"
export { foreignStore, guardedStore } from "./stores/foreign-store.ts"
export { refundsOf } from "./stores/refunds-of.ts"
export { RoundTrips } from "./stores/round-trips.ts"
export { BACKGROUND_REFUND_MS } from "./stores/store.ts"
export { StoreListeners } from "./stores/store-listeners.ts"
export { countsRefusals, type PendingCheck, statesAfterRefusal } from "./stores/take-together.ts"
