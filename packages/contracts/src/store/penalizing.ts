import type { Store } from "@sluice/core"
import type { Check, Policy } from "@sluice/core/stores"
import { expect } from "expect"
import {
  check,
  countOf,
  FIRST_HIT,
  HOUR,
  HOURLY,
  type Looked,
  MINUTE,
  peekOne,
  SLIDING,
  type StoreSuite,
  stateOf,
  takeInOrder,
  takeOne,
  UNTAKEN,
  waitOf,
} from "./asking.ts"

/** A policy that is used up after 15 units, for longer than any of these tests takes. */
const DAILY: Policy = { ...FIRST_HIT, counter: "fh-1d", limit: 15, windowMs: 24 * HOUR }

/** Blocks a client for five minutes after three refusals within a minute. */
const PENALTY: Policy = {
  name: "penalty",
  counter: "pn-5m",
  algorithm: "penalty",
  limit: 3,
  windowMs: 5 * MINUTE,
  align: "epoch",
  penalty: { refusals: 3, withinMs: MINUTE, forMs: [5 * MINUTE] },
}

/**
 * Blocks a client after three refusals within a minute, first for five minutes, then for ten minutes, then for an
 * hour.
 */
const GROWING: Policy = {
  ...PENALTY,
  counter: "pn-up",
  windowMs: HOUR,
  penalty: { refusals: 3, withinMs: MINUTE, forMs: [5 * MINUTE, 10 * MINUTE, HOUR] },
}

/** A penalty that blocks a client only by hand. */
const NEVER: Policy = {
  ...PENALTY,
  counter: "pn-0",
  limit: 0,
  windowMs: 1,
  penalty: { refusals: 0, withinMs: 1, forMs: [1] },
}

/** Adds the behaviors of penalties: blocks after refusals, and blocks by hand. */
export function penalizing({ group, behaves, behavesWithEach }: StoreSuite): void {
  group("a penalty", () => {
    const block = (more: Partial<Check> = {}) => check(PENALTY, 1, more)
    /** Returns the number of refusals, and whether they have caused a block. */
    const told = ({ checks }: Looked): [refusals: number, isBlocked: boolean] => {
      const { current, previous } = checks.at(-1)?.state ?? {}
      return [current as number, previous === 1]
    }

    behavesWithEach("counts no admitted requests", async (store, policy) => {
      const { granted, checks } = await takeOne(store, check(policy, 10), block())
      expect([granted, checks[0]?.taken, await countOf(store, PENALTY)]).toEqual([true, 10, 0])
    })

    behavesWithEach(
      "blocks after the given number of refusals, and then admits nothing",
      async (store, policy, clock) => {
        const startMs = clock.now()
        await takeOne(store, check(policy, 10), block())
        const ledger = []
        for (let i = 0; i < 5; i++) {
          // This time is too short for any unit to become available again.
          clock.advance(100)
          ledger.push(told(await takeOne(store, check(policy, 10), block())))
        }
        expect(ledger).toEqual([
          [1, false],
          [2, false],
          [3, true],
          [3, true],
          [3, true],
        ])
        clock.set(startMs + 300 + 5 * MINUTE - 1)
        const refused = await takeOne(store, check(policy, 1), block())
        expect([refused.granted, refused.checks[0]?.taken]).toEqual([false, 0])
        clock.advance(1)
        expect((await takeOne(store, check(policy, 10), block())).granted).toBe(true)
        expect(told(await takeOne(store, check(policy, 10), block()))).toEqual([1, false])
      },
    )

    behaves(
      "forgets refusals when the configured time since the first one has passed",
      async (store, clock) => {
        await takeOne(store, check(HOURLY, 15))
        const ledger = []
        for (const afterMs of [0, 59_999, 1, 59_999, 1]) {
          clock.advance(afterMs)
          ledger.push(told(await takeOne(store, check(HOURLY), block())))
        }
        expect(ledger).toEqual([
          [1, false],
          [2, false],
          [1, false],
          [2, false],
          [1, false],
        ])
      },
    )

    behaves("counts only refusals by the check directly before it", async (store) => {
      const other: Policy = { ...HOURLY, counter: "sl-1h-other", limit: 2 }
      await takeOne(store, check(other, 2))
      await takeOne(store, check(other), check(HOURLY), block())
      await takeOne(store, check(HOURLY), block(), check(other))
      expect(await countOf(store, PENALTY)).toBe(0)
      await takeOne(store, check(HOURLY, 15))
      await takeOne(store, check(other), check(HOURLY), block())
      await takeOne(store, check(HOURLY), block(), check(other))
      expect(await countOf(store, PENALTY)).toBe(2)
    })

    behaves("does not count a shadow check, a cost above the limit or a peek", async (store) => {
      await takeOne(store, check(HOURLY, 15))
      await takeOne(store, check(HOURLY, 1, { shadow: true }), block())
      await takeOne(store, check(HOURLY, 16), block())
      await peekOne(store, check(HOURLY), block())
      expect(await countOf(store, PENALTY)).toBe(0)
      await takeOne(store, check(HOURLY), block())
      expect(await countOf(store, PENALTY)).toBe(1)
    })

    behaves("counts each refused request", async (store) => {
      await takeOne(store, check(HOURLY, 15))
      const answers = await takeInOrder(
        store,
        Array.from({ length: 4 }, () => [check(HOURLY), block()]),
      )
      expect(answers.map(told)).toEqual([
        [1, false],
        [2, false],
        [3, true],
        [3, true],
      ])
    })

    behaves("is ended by a reset, but not by a refund", async (store) => {
      await takeOne(store, check(HOURLY, 10))
      let after = await takeOne(store, check(HOURLY, 6), block())
      for (let i = 0; i < 2; i++) after = await takeOne(store, check(HOURLY, 6), block())
      const { state } = after.checks[1] ?? stateless()
      for (const units of [5, -5])
        await store.refund([{ policy: PENALTY, partition: "alice", units, after: state }])
      expect((await takeOne(store, check(HOURLY), block())).granted).toBe(false)
      await store.reset([{ policy: PENALTY, partition: "alice" }])
      expect((await takeOne(store, check(HOURLY), block())).granted).toBe(true)
      expect(stateOf(await peekOne(store, check(HOURLY, 0))).current).toBe(11)
    })

    behaves(
      "blocks for as many milliseconds as units are charged, without a refusal",
      async (store, clock) => {
        const charge = (units: number) =>
          store.refund([{ policy: NEVER, partition: "alice", units, after: UNTAKEN }])
        const asks = async () => takeOne(store, check(HOURLY), check(NEVER))
        expect((await asks()).granted).toBe(true)
        await charge(-HOUR)
        // A shorter block changes nothing.
        await charge(-MINUTE)
        const refused = await asks()
        expect([refused.granted, refused.checks[0]?.taken, refused.checks[1]?.taken]).toEqual([false, 0, 0])
        expect(waitOf({ ...refused, checks: refused.checks.slice(1) }, check(NEVER))).toBe(HOUR)
        clock.advance(HOUR - MINUTE)
        expect((await asks()).granted).toBe(false)
        await charge(-2 * MINUTE)
        clock.advance(2 * MINUTE - 1)
        expect((await asks()).granted).toBe(false)
        clock.advance(1)
        expect((await asks()).granted).toBe(true)
        await charge(-HOUR)
        await store.reset([{ policy: NEVER, partition: "alice" }])
        expect((await asks()).granted).toBe(true)
      },
    )

    behaves("blocks no client for refusals if its limit is 0", async (store) => {
      await takeOne(store, check(HOURLY, 15))
      for (let i = 0; i < 3; i++) await takeOne(store, check(HOURLY), check(NEVER))
      expect(await countOf(store, NEVER)).toBe(0)
      expect((await takeOne(store, check(SLIDING), check(NEVER))).granted).toBe(true)
    })

    const useUp = (store: Store) => takeOne(store, check(DAILY, 15), check(GROWING))
    const refuse = (store: Store) => takeOne(store, check(DAILY), check(GROWING))
    /** Refuses the client until the client is blocked. Returns the duration of the block. */
    const blockAgain = async (store: Store): Promise<number> => {
      let lengthMs = 0
      while (lengthMs === 0) lengthMs = blockMs(await refuse(store))
      return lengthMs
    }
    const blockMs = (answer: Looked): number =>
      waitOf({ ...answer, checks: answer.checks.slice(1) }, check(GROWING))

    behaves("with several lengths blocks longer each time, up to the last length", async (store, clock) => {
      await useUp(store)
      const lengths = []
      for (let i = 0; i < 4; i++) {
        const lengthMs = await blockAgain(store)
        lengths.push(lengthMs / MINUTE)
        clock.advance(lengthMs - 1)
        expect(blockMs(await refuse(store))).toBe(1)
        clock.advance(1)
      }
      expect(lengths).toEqual([5, 10, 60, 60])
    })

    behaves("moves a client one step down for each quiet period after a block", async (store, clock) => {
      await useUp(store)
      const lengths = []
      // The step moves down exactly when the period has passed.
      for (const quietMs of [0, 0, MINUTE - 1, MINUTE, 2 * MINUTE - 1, 2 * MINUTE, 2 * MINUTE, HOUR]) {
        clock.advance(quietMs)
        const lengthMs = await blockAgain(store)
        lengths.push(lengthMs / MINUTE)
        clock.advance(lengthMs)
      }
      expect(lengths).toEqual([5, 10, 60, 60, 60, 10, 5, 5])
    })

    behaves("starts the quiet period again with each refusal that counts", async (store, clock) => {
      await useUp(store)
      const lengths = []
      for (const quietMs of [0, MINUTE - 1, MINUTE]) {
        // Two refusals do not block. The refusals expire a minute after the first refusal, and the step expires a
        // minute after the second.
        clock.advance(MINUTE - 1)
        await refuse(store)
        clock.advance(40_000)
        await refuse(store)
        clock.advance(quietMs)
        const lengthMs = await blockAgain(store)
        lengths.push(lengthMs / MINUTE)
        clock.advance(lengthMs)
      }
      expect(lengths).toEqual([5, 10, 10])
    })

    behaves("keeps the step through a block by hand, but not through a reset", async (store, clock) => {
      const counter = { policy: GROWING, partition: "alice" }
      await useUp(store)
      clock.advance(await blockAgain(store))
      await store.refund([{ ...counter, units: -HOUR, after: UNTAKEN }])
      expect(blockMs(await refuse(store))).toBe(HOUR)
      clock.advance(HOUR)
      expect(await blockAgain(store)).toBe(10 * MINUTE)
      await store.reset([counter])
      expect(await blockAgain(store)).toBe(5 * MINUTE)
    })

    behaves("counts every refusal towards growing blocks", async (store) => {
      await useUp(store)
      const answers = await takeInOrder(
        store,
        Array.from({ length: 4 }, () => [check(DAILY), check(GROWING)]),
      )
      expect(answers.map(blockMs)).toEqual([0, 0, 5 * MINUTE, 5 * MINUTE])
    })

    behaves("keeps the length of a block if the clock goes back", async (store, clock) => {
      await takeOne(store, check(HOURLY, 10))
      for (let i = 0; i < 3; i++) await takeOne(store, check(HOURLY, 6), block())
      clock.advance(-10 * MINUTE)
      expect((await takeOne(store, check(HOURLY), block())).granted).toBe(false)
      clock.advance(5 * MINUTE - 1)
      expect((await takeOne(store, check(HOURLY), block())).granted).toBe(false)
      clock.advance(1)
      expect((await takeOne(store, check(HOURLY), block())).granted).toBe(true)
    })
  })
}

function stateless(): never {
  throw new Error("The store did not return a result for the penalty.")
}
