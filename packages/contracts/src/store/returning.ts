import type { Store } from "@sluice/core"
import type { CounterState, Policy } from "@sluice/core/stores"
import type { ManualClock } from "@sluice/core/testing"
import { expect } from "expect"
import {
  CALENDAR,
  check,
  countOf,
  FIXED,
  HOURLY,
  isBucket,
  LOG,
  MINUTE,
  only,
  peekOne,
  RATES,
  SLIDING,
  type StoreSuite,
  stateOf,
  takeOne,
  UNTAKEN,
  usedOf,
  withCeiling,
} from "./asking.ts"

/**
 * Number of units that a refund of nine units returns, keyed by policy. Four units were taken, and three more half a
 * minute later. A refund returns at most the taken units that the window contains, or that the bucket has not yet
 * refilled.
 */
const GIVEN_BACK: Readonly<Record<string, number>> = {
  sliding: 7,
  extra: 7,
  fixed: 7,
  "first-hit": 7,
  calendar: 7,
  "sub-windows": 4,
  strict: 4,
  log: 4,
  token: 0,
  burst: 0,
  leaky: 0,
  periodic: 4,
  permits: 7,
}

/** Adds the behaviors of reads, refunds, charges and resets. */
export function returning({ group, behaves, behavesWithEach }: StoreSuite): void {
  group("read", () => {
    behavesWithEach("takes nothing, however often it is called", async (store, policy) => {
      await takeOne(store, check(policy, 4))
      for (let i = 0; i < 20; i++) await peekOne(store, check(policy, 3), check(HOURLY, 3))
      expect([await countOf(store, policy), await countOf(store, HOURLY)]).toEqual([4, 0])
    })

    behavesWithEach("returns whether take would admit, and the current counts", async (store, policy) => {
      for (const cost of [0, 4, 6, 7, 6, 1, 0]) {
        const peeked = await peekOne(store, check(policy, cost))
        const before = await countOf(store, policy)
        expect(only(peeked.checks)).toMatchObject({ state: { current: before }, taken: 0 })
        expect((await takeOne(store, check(policy, cost))).granted).toBe(peeked.granted)
      }
    })

    behaves(
      "decides all checks together, including shadow checks and two checks of one counter",
      async (store) => {
        expect((await peekOne(store, check(SLIDING, 6), check(SLIDING, 5))).granted).toBe(false)
        expect((await peekOne(store, check(SLIDING, 6), check(SLIDING, 5, { shadow: true }))).granted).toBe(
          true,
        )
        expect((await peekOne(store, check(SLIDING, 11), check(HOURLY, 1))).granted).toBe(false)
        expect((await peekOne(store, check(SLIDING, 11, { shadow: true }), check(HOURLY, 1))).granted).toBe(
          true,
        )
      },
    )

    behaves("returns the state of each counter, in order, and one time", async (store, clock) => {
      await takeOne(store, check(SLIDING, 8))
      await takeOne(store, check(HOURLY, 3))
      const { nowMs, counters } = await store.read([check(HOURLY), check(SLIDING), check(HOURLY)])
      expect([nowMs, ...counters.map(({ state }) => state.current)]).toEqual([clock.now(), 3, 8, 3])
    })

    behaves("of no counter returns none", async (store) => {
      expect((await store.read([])).counters).toEqual([])
    })
  })

  group("refund", () => {
    async function taken(store: Store, policy: Policy, units: number): Promise<CounterState> {
      return stateOf(await takeOne(store, check(policy, units)))
    }

    behavesWithEach("returns units, which can be taken again", async (store, policy) => {
      const after = await taken(store, policy, 10)
      await store.refund([{ policy, partition: "alice", units: 3, after }])
      expect(await countOf(store, policy)).toBe(7)
      expect((await takeOne(store, check(policy, 4))).granted).toBe(false)
      expect((await takeOne(store, check(policy, 3))).granted).toBe(true)
    })

    behaves("returns units if the caller sets a deadline", async (store) => {
      const after = await taken(store, SLIDING, 10)
      await store.refund([{ policy: SLIDING, partition: "alice", units: 3, after }], 60_000)
      expect(await countOf(store, SLIDING)).toBe(7)
    })

    behavesWithEach("is applied as often as it is listed", async (store, policy) => {
      const after = await taken(store, policy, 10)
      const refund = { policy, partition: "alice", units: 2, after }
      await store.refund([refund])
      expect(await countOf(store, policy)).toBe(8)
      await store.refund([refund, refund])
      expect(await countOf(store, policy)).toBe(4)
      await store.refund([])
      expect(await countOf(store, policy)).toBe(4)
    })

    behavesWithEach("does not reduce a count below zero", async (store, policy) => {
      const after = await taken(store, policy, 2)
      await store.refund([{ policy, partition: "alice", units: 5, after }])
      expect(await countOf(store, policy)).toBe(0)
      expect((await takeOne(store, check(policy, 11))).granted).toBe(false)
      expect((await takeOne(store, check(policy, 10))).granted).toBe(true)
      expect((await takeOne(store, check(policy, 1))).granted).toBe(false)
    })

    behavesWithEach("does nothing if no units were taken", async (store, policy, clock) => {
      const after = { startMs: clock.now(), current: 5, previous: 0 }
      await store.refund([{ policy, partition: "alice", units: 5, after }])
      expect((await takeOne(store, check(policy, 11))).granted).toBe(false)
      expect((await takeOne(store, check(policy, 10))).granted).toBe(true)
    })

    behavesWithEach("does not change another counter or partition", async (store, policy) => {
      const after = await taken(store, policy, 5)
      await store.refund([
        { policy: HOURLY, partition: "alice", units: 5, after },
        { policy, partition: "bob", units: 5, after },
      ])
      expect(await countOf(store, policy)).toBe(5)
    })

    behaves("reduces the previous window if the units were taken in it", async (store, clock) => {
      const after = await taken(store, SLIDING, 6)
      clock.advance(MINUTE)
      await taken(store, SLIDING, 3)
      await store.refund([{ policy: SLIDING, partition: "alice", units: 4, after }])
      const { checks } = await peekOne(store, check(SLIDING, 0))
      expect(only(checks)).toMatchObject({ state: { previous: 2, current: 3 } })
    })

    behavesWithEach("does nothing after the window has passed", async (store, policy, clock) => {
      const after = await taken(store, policy, 6)
      clock.advance(2 * MINUTE)
      await taken(store, policy, 6)
      await store.refund([{ policy, partition: "alice", units: 6, after }])
      expect(await countOf(store, policy)).toBe(6)
    })
  })

  group("a grant", () => {
    const grant = (store: Store, units: number) =>
      store.refund([
        { policy: { ...CALENDAR, algorithm: "grant" }, partition: "alice", units, after: UNTAKEN },
      ])
    const counts = async (store: Store) => {
      const { checks } = await peekOne(store, check(CALENDAR, 0))
      const { current, previous } = only(checks).state
      return { used: current, granted: previous }
    }
    const admits = async (store: Store, cost: number) => (await takeOne(store, check(CALENDAR, cost))).granted

    behaves("adds units to the limit until the calendar period ends", async (store, clock) => {
      expect([await admits(store, 10), await admits(store, 1)]).toEqual([true, false])
      await grant(store, 3)
      expect(await counts(store)).toEqual({ used: 10, granted: 3 })
      expect([await admits(store, 4), await admits(store, 3), await admits(store, 1)]).toEqual([
        false,
        true,
        false,
      ])
      clock.advance(MINUTE)
      expect(await counts(store)).toEqual({ used: 0, granted: 0 })
      expect([await admits(store, 10), await admits(store, 1)]).toEqual([true, false])
    })

    behaves("stays while no units are in use, and changes no other counter", async (store) => {
      await grant(store, 2)
      await grant(store, 3)
      const after = stateOf(await takeOne(store, check(CALENDAR, 10)))
      await store.refund([{ policy: CALENDAR, partition: "alice", units: 10, after }])
      expect(await counts(store)).toEqual({ used: 0, granted: 5 })
      for (const other of [check(FIXED, 11), check(CALENDAR, 11, { partition: "bob" })])
        expect((await takeOne(store, other)).granted).toBe(false)
      expect([await admits(store, 10), await admits(store, 5), await admits(store, 1)]).toEqual([
        true,
        true,
        false,
      ])
    })

    behaves("is taken back by a charge, but never more than was granted", async (store) => {
      await takeOne(store, check(CALENDAR, 9))
      await grant(store, 5)
      await grant(store, -2)
      expect(await counts(store)).toEqual({ used: 9, granted: 3 })
      await grant(store, -4)
      expect(await counts(store)).toEqual({ used: 9, granted: 0 })
      expect([await admits(store, 2), await admits(store, 1)]).toEqual([false, true])
    })

    behaves(
      "of any size leaves a counter that can be charged, and that gives all of it back",
      async (store) => {
        const [most, quarter] = [Number.MAX_SAFE_INTEGER, (2 ** 53 - 4) / 4]
        await grant(store, most)
        await grant(store, most)
        expect(await counts(store)).toEqual({ used: 0, granted: quarter })
        const { checks } = await takeOne(store, check(CALENDAR, quarter))
        await store.refund([{ policy: CALENDAR, partition: "alice", units: -7, after: only(checks).state }])
        expect(await counts(store)).toEqual({ used: quarter + 7, granted: quarter })
        await grant(store, -most)
        expect(await counts(store)).toEqual({ used: quarter + 7, granted: 0 })
      },
    )
  })

  group("a later refund or charge", () => {
    behavesWithEach("returns at most the units that still count", async (store, policy, clock) => {
      const { checks } = await takeOne(store, check(policy, 4))
      clock.advance(30_000)
      await takeOne(store, check(policy, 3))
      const before = await usedOf(store, policy)
      await store.refund([{ policy, partition: "alice", units: 9, after: only(checks).state }])
      const given = before - (await usedOf(store, policy))
      expect([policy.name, given]).toEqual([policy.name, GIVEN_BACK[policy.name]])
    })

    const countsAboveLimit = async (store: Store, policy: Policy, clock: ManualClock) => {
      const { checks } = await takeOne(store, check(policy, 4))
      const charge = { policy, partition: "alice", units: -9, after: only(checks).state }
      await store.refund([charge])
      expect(await countOf(store, policy)).toBe(13)
      expect((await takeOne(store, check(policy, 1))).granted).toBe(false)
      clock.advance(isBucket(policy) ? 2 * MINUTE : 3 * MINUTE)
      expect((await takeOne(store, check(policy, 10))).granted).toBe(true)
    }
    behavesWithEach("counts charged units even above the limit", countsAboveLimit, RATES)

    // Leave out buckets. A bucket counts fractions of units, so its maximum is lower, and a single charge stays below
    // it.
    for (const policy of RATES.filter((each) => !isBucket(each))) {
      behaves(`does not count above the largest exact number (${policy.name})`, async (store, clock) => {
        const [most, some] = [Number.MAX_SAFE_INTEGER, 2 ** 43]
        const { checks } = await takeOne(store, check(withCeiling(policy, most), most - some - 1))
        const charge = { policy, partition: "alice", units: -some, after: only(checks).state }
        const counts: number[] = []
        for (let times = 0; times < 3; times++) {
          await store.refund([charge])
          counts.push(await countOf(store, policy))
        }
        expect(counts).toEqual([most - 1, most, most])
        expect((await takeOne(store, check(policy, 1))).granted).toBe(false)
        clock.advance(3 * MINUTE)
        expect((await takeOne(store, check(policy, 10))).granted).toBe(true)
      })
    }

    behaves(
      "refunds but does not charge if two windows together exceed the largest exact number",
      async (store, clock) => {
        const [wide, some] = [withCeiling(SLIDING, Number.MAX_SAFE_INTEGER), 2 ** 52]
        await takeOne(store, check(wide, Number.MAX_SAFE_INTEGER))
        clock.advance(MINUTE + 0.9 * MINUTE)
        const { checks } = await takeOne(store, check(wide, some))
        const counts: number[] = []
        for (const units of [-3, 1]) {
          await store.refund([{ policy: SLIDING, partition: "alice", units, after: only(checks).state }])
          counts.push(only((await peekOne(store, check(SLIDING, 0))).checks).state.current)
        }
        expect(counts).toEqual([some, some - 1])
      },
    )

    behaves(
      "counts in a log at the time of the take, even if the take had a cost of 0",
      async (store, clock) => {
        for (const [partition, beside] of [
          ["alice", []],
          ["bob", [check(HOURLY)]],
        ] as const) {
          const log = { ...check(LOG), partition }
          await takeOne(store, { ...log, cost: 3 })
          clock.advance(20_000)
          const [nothing] = (await takeOne(store, { ...log, cost: 0 }, ...beside)).checks
          if (nothing === undefined) throw new Error("The store did not return a result for the check.")
          clock.advance(5_000)
          await takeOne(store, log)
          await store.refund([{ policy: LOG, partition, units: -2, after: nothing.state }])
          const counts: number[] = []
          for (const afterMs of [0, 35_000, 1, 19_999, 1, 5_000]) {
            clock.advance(afterMs)
            counts.push(await countOf(store, LOG, partition))
          }
          expect(counts).toEqual([6, 6, 3, 3, 1, 0])
        }
      },
    )
  })

  group("reset", () => {
    behavesWithEach(
      "clears both windows of a counter, and no other counter",
      async (store, policy, clock) => {
        const bob = { partition: "bob" }
        await takeOne(store, check(policy, 10), check(HOURLY, 1))
        clock.advance(MINUTE + MINUTE / 2)
        await takeOne(store, check(policy, 1))
        await takeOne(store, check(policy, 2, bob))
        await store.reset([{ policy, partition: "alice" }])
        expect(await countOf(store, policy)).toBe(0)
        expect([await countOf(store, HOURLY), await countOf(store, policy, "bob")]).toEqual([1, 2])
        expect((await takeOne(store, check(policy, 10))).granted).toBe(true)
      },
    )

    behaves("clears a counter if the caller sets a deadline", async (store) => {
      await takeOne(store, check(SLIDING, 10))
      await store.reset([{ policy: SLIDING, partition: "alice" }], 60_000)
      expect(await countOf(store, SLIDING)).toBe(0)
    })

    behaves("clears several counters in one call, and accepts counters that do not exist", async (store) => {
      await takeOne(store, check(SLIDING, 1), check(HOURLY, 1))
      const keys = [SLIDING, HOURLY, FIXED].map((policy) => ({ policy, partition: "alice" }))
      await store.reset(keys)
      await store.reset([])
      expect([await countOf(store, SLIDING), await countOf(store, HOURLY)]).toEqual([0, 0])
    })
  })
}
