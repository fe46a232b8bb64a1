/**
 * For authors of stores, including stores in front of another store. Exports the port, counters in any table of
 * states, stores in a database with transactions, and functions that Sluice's stores share. docs/extend/stores.md
 * contains examples.
 * @module @sluice/core/stores
 */

export type { Algorithm, CounterState } from "./algorithms/algorithm.ts"
export { timeUnitMs } from "./algorithms/exact-counts.ts"
export { algorithmOf, countsByPart, releases } from "./algorithms/kinds.ts"
export { bucketMsOf, bucketsOf } from "./algorithms/sub-windows.ts"
export type { PermitCounts } from "./decision/permits/ledger.ts"
export type { StoreErrorKind, StoreOutcome } from "./ground/errors.ts"
export {
  capacityOf,
  ceilingOf,
  type ParsedQueue,
  type ParsedThrottle,
  type Penalty,
  type Policy,
} from "./ground/policy.ts"
export { makeStringsQuick } from "./ground/quick-strings.ts"
export { setTimer, soon } from "./ground/time.ts"
export type { PermitsLostEvent } from "./limiter/interface/limiter.ts"
export { BoundedTable, type TableEntry } from "./stores/bounded-table.ts"
export { type CounterStates, Counters, chargeable, type NameKey } from "./stores/counters.ts"
export { foreignStore, guardedStore } from "./stores/foreign-store.ts"
export { peekStore } from "./stores/peek-store.ts"
export { refundsOf } from "./stores/refunds-of.ts"
export { RoundTrips } from "./stores/round-trips.ts"
export {
  BACKGROUND_REFUND_MS,
  type ChargesLostEvent,
  type Check,
  type Counted,
  type CounterKey,
  type CounterReading,
  type EvictionEvent,
  type Refund,
  type RefundLostEvent,
  type StoreCondition,
  type StoreEvent,
  type StoreReading,
  type StoreResult,
  type StoreWarningEvent,
} from "./stores/store.ts"
export { storeErrorOf } from "./stores/store-error.ts"
export { StoreListeners } from "./stores/store-listeners.ts"
export type { ChargeCounts, LeaseCounts, StoreStatus } from "./stores/store-status.ts"
export {
  countsRefusals,
  type PendingCheck,
  statesAfterRefusal,
  takeTogether,
} from "./stores/take-together.ts"
export type {
  ChangeCounters,
  CounterBackend,
  CounterChange,
  KeptCounter,
} from "./stores/transactional/counter-backend.ts"
export { transactionalStore } from "./stores/transactional/transactional-store.ts"
