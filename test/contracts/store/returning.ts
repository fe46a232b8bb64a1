import { describe, expect } from "vitest"
import type { Policy } from "../../../packages/core/src/policy.ts"
import type { Store } from "../../../packages/core/src/stores/store.ts"
import {
  type Behaves,
  type BehavesWithEach,
  check,
  countOf,
  FIXED,
  HOURLY,
  MINUTE,
  only,
  peekOne,
  SLIDING,
  takeOne,
} from "./asking.ts"

/** What is told without taking, given back and forgotten. */
export function returning(behaves: Behaves, behavesWithEach: BehavesWithEach): void {
  describe("peek", () => {
    behavesWithEach("takes nothing, however often", async (store, policy) => {
      await takeOne(store, check(policy, 4))
      for (let i = 0; i < 20; i++) await peekOne(store, check(policy, 3), check(HOURLY, 3))
      expect([await countOf(store, policy), await countOf(store, HOURLY)]).toEqual([4, 0])
    })

    behavesWithEach("tells whether take would admit, and what is counted now", async (store, policy) => {
      for (const cost of [0, 4, 6, 7, 6, 1, 0]) {
        const peeked = await peekOne(store, check(policy, cost))
        const before = await countOf(store, policy)
        expect(only(peeked.checks)).toMatchObject({ current: before, taken: 0 })
        expect((await takeOne(store, check(policy, cost))).granted).toBe(peeked.granted)
      }
    })

    behaves("answers for all checks together, with shadow ones and two of one counter", async (store) => {
      expect((await peekOne(store, check(SLIDING, 6), check(SLIDING, 5))).granted).toBe(false)
      expect((await peekOne(store, check(SLIDING, 6), check(SLIDING, 5, { shadow: true }))).granted).toBe(
        true,
      )
      expect((await peekOne(store, check(SLIDING, 11), check(HOURLY, 1))).granted).toBe(false)
      expect((await peekOne(store, check(SLIDING, 11, { shadow: true }), check(HOURLY, 1))).granted).toBe(
        true,
      )
    })

    behaves("answers each request alone", async (store) => {
      const answers = await store.peek([[check(SLIDING, 8)], [check(SLIDING, 8)], [check(SLIDING, 11)]])
      expect(answers.map(({ granted }) => granted)).toEqual([true, true, false])
    })
  })

  describe("giving back", () => {
    async function taken(store: Store, policy: Policy, units: number): Promise<number> {
      return only((await takeOne(store, check(policy, units))).checks).startMs
    }

    behavesWithEach("units come back, and can be taken again", async (store, policy) => {
      const takenInMs = await taken(store, policy, 10)
      await store.giveBack([{ policy, partition: "alice", units: 3, takenInMs }])
      expect(await countOf(store, policy)).toBe(7)
      expect((await takeOne(store, check(policy, 4))).granted).toBe(false)
      expect((await takeOne(store, check(policy, 3))).granted).toBe(true)
    })

    behavesWithEach("each is given back as often as it is listed, and no more", async (store, policy) => {
      const takenInMs = await taken(store, policy, 10)
      const refund = { policy, partition: "alice", units: 2, takenInMs }
      await store.giveBack([refund])
      expect(await countOf(store, policy)).toBe(8)
      await store.giveBack([refund, refund])
      expect(await countOf(store, policy)).toBe(4)
      await store.giveBack([])
      expect(await countOf(store, policy)).toBe(4)
    })

    behavesWithEach("never below zero", async (store, policy) => {
      const takenInMs = await taken(store, policy, 2)
      await store.giveBack([{ policy, partition: "alice", units: 5, takenInMs }])
      expect(await countOf(store, policy)).toBe(0)
      expect((await takeOne(store, check(policy, 11))).granted).toBe(false)
      expect((await takeOne(store, check(policy, 10))).granted).toBe(true)
      expect((await takeOne(store, check(policy, 1))).granted).toBe(false)
    })

    behavesWithEach("nothing when nobody has taken", async (store, policy, clock) => {
      await store.giveBack([{ policy, partition: "alice", units: 5, takenInMs: clock.now() }])
      expect((await takeOne(store, check(policy, 11))).granted).toBe(false)
      expect((await takeOne(store, check(policy, 10))).granted).toBe(true)
    })

    behavesWithEach("nothing of another counter or partition", async (store, policy) => {
      const takenInMs = await taken(store, policy, 5)
      await store.giveBack([
        { policy: HOURLY, partition: "alice", units: 5, takenInMs },
        { policy, partition: "bob", units: 5, takenInMs },
      ])
      expect(await countOf(store, policy)).toBe(5)
    })

    behaves("comes off the previous window when they were taken in it", async (store, clock) => {
      const takenInMs = await taken(store, SLIDING, 6)
      clock.advance(MINUTE)
      await taken(store, SLIDING, 3)
      await store.giveBack([{ policy: SLIDING, partition: "alice", units: 4, takenInMs }])
      const { checks } = await peekOne(store, check(SLIDING, 0))
      expect(only(checks)).toMatchObject({ previous: 2, current: 3 })
    })

    behavesWithEach("nothing when the window has passed", async (store, policy, clock) => {
      const takenInMs = await taken(store, policy, 6)
      clock.advance(2 * MINUTE)
      await taken(store, policy, 6)
      await store.giveBack([{ policy, partition: "alice", units: 6, takenInMs }])
      expect(await countOf(store, policy)).toBe(6)
    })
  })

  describe("reset", () => {
    behavesWithEach("forgets a counter, both its windows, and no other", async (store, policy, clock) => {
      const bob = { partition: "bob" }
      await takeOne(store, check(policy, 10), check(HOURLY, 1), check(policy, 2, bob))
      clock.advance(MINUTE - 1)
      await takeOne(store, check(policy, 1))
      await store.reset([{ policy, partition: "alice" }])
      expect(await countOf(store, policy)).toBe(0)
      expect([await countOf(store, HOURLY), await countOf(store, policy, "bob")]).toEqual([1, 2])
      expect((await takeOne(store, check(policy, 10))).granted).toBe(true)
    })

    behaves("forgets several at once, and takes counters that are not there", async (store) => {
      await takeOne(store, check(SLIDING, 1), check(HOURLY, 1))
      const keys = [SLIDING, HOURLY, FIXED].map((policy) => ({ policy, partition: "alice" }))
      await store.reset(keys)
      await store.reset([])
      expect([await countOf(store, SLIDING), await countOf(store, HOURLY)]).toEqual([0, 0])
    })
  })
}
