import type { CounterState } from "../packages/core/src/algorithms/algorithm.ts"
import type { ManualClock } from "../packages/core/src/ground/manual-clock.ts"
import type { MaybePromise } from "../packages/core/src/ground/maybe-promise.ts"
import type { Policy } from "../packages/core/src/ground/policy.ts"
import type { StoreResult } from "../packages/core/src/stores/store.ts"

/** Access to one counter of a store. */
export interface LongLog {
  readonly clock: ManualClock
  take(policy: Policy): MaybePromise<StoreResult | undefined>
  refund(policy: Policy, units: number, after: CounterState): MaybePromise<void>
}

/** A case on a log of 1,000 entries. `counting` runs the work whose reads are counted. */
interface LongLogCase {
  readonly name: string
  readonly policy: Policy
  act(log: LongLog, policy: Policy, counting: (work: () => Promise<unknown>) => Promise<void>): Promise<void>
}

const ENTRIES = 1_000
const GAP_MS = 3_600
/** The maximum number of digits that a case may read. Finding an entry among 1,000 takes ten reads of 4 digits each. */
export const MOST_DIGITS = 100

const FULL: Policy = {
  name: "log",
  counter: "log",
  algorithm: "sliding-log",
  align: "epoch",
  limit: ENTRIES,
  windowMs: ENTRIES * GAP_MS,
}
const ROOMY: Policy = { ...FULL, limit: ENTRIES + 10 }
const KNOCKED: Policy = { ...FULL, countRejected: true }

/** Cases that read only a few entries of a long log. */
export const LONG_LOG_CASES: readonly LongLogCase[] = [
  {
    name: "adds an entry and drops an old one",
    policy: ROOMY,
    async act(log, policy, counting) {
      await fill(log, policy)
      log.clock.advance(GAP_MS + 1)
      await counting(async () => log.take(policy))
    },
  },
  {
    name: "takes a unit in the same millisecond",
    policy: ROOMY,
    async act(log, policy, counting) {
      await fill(log, policy)
      await counting(async () => log.take(policy))
    },
  },
  {
    name: "counts a refused request",
    policy: KNOCKED,
    async act(log, policy, counting) {
      await fill(log, policy)
      log.clock.advance(1)
      await counting(async () => log.take(policy))
      // Take another unit in the same millisecond.
      await counting(async () => log.take(policy))
    },
  },
  {
    name: "applies a refund or a charge",
    policy: ROOMY,
    async act(log, policy, counting) {
      const after = await fill(log, policy)
      await counting(async () => log.refund(policy, -1, after))
      await counting(async () => log.refund(policy, 2, after))
    },
  },
  {
    name: "takes a unit on a clock set back",
    policy: ROOMY,
    async act(log, policy, counting) {
      await fill(log, policy)
      log.clock.set(log.clock.now() - GAP_MS)
      await counting(async () => log.take(policy))
    },
  },
]

/** Fills a log with entries. Returns the log's state after the middle entry. */
async function fill(log: LongLog, policy: Policy): Promise<CounterState> {
  let middle: CounterState | undefined
  for (let i = 0; i < ENTRIES; i++) {
    log.clock.advance(GAP_MS)
    const answer = await log.take(policy)
    if (i === ENTRIES / 2) middle = answer?.checks[0]?.state
  }
  if (middle === undefined) throw new Error("the store has told nothing")
  return middle
}
