import { type Policy, releases } from "@sluice/core/stores"
import { expect } from "expect"
import {
  check,
  countOf,
  currentOf,
  FIRST_HIT,
  FIXED,
  isBucket,
  MINUTE,
  only,
  peekOne,
  SLIDING,
  type StoreSuite,
  stateOf,
  takeOne,
  withCeiling,
} from "./asking.ts"

const MOST = Number.MAX_SAFE_INTEGER

/**
 * Returns the largest limit that a policy counts exactly. A bucket that refills evenly counts fractions of units, for
 * example 1/60,000 of a unit. A rule has at most a million permits.
 */
function mostOf(policy: Policy): number {
  if (releases(policy)) return 1_000_000
  const isEven = isBucket(policy) && policy.refill !== "periodic"
  return isEven ? Math.floor(MOST / (2 * policy.windowMs)) : MOST
}

/**
 * Milliseconds after the clock's start at which the state begins, keyed by policy. `first` applies after a request at
 * 25 s, and `second` after a further request at 35 s.
 */
const STARTS_MS: Readonly<Record<string, { readonly first: number; readonly second: number }>> = {
  "first-hit": { first: 25_000, second: 25_000 },
  "sub-windows": { first: 25_000, second: 35_000 },
  strict: { first: 25_000, second: 35_000 },
  log: { first: 25_000, second: 35_000 },
  token: { first: 25_000, second: 35_000 },
  burst: { first: 25_000, second: 35_000 },
  leaky: { first: 25_000, second: 35_000 },
}

/** Adds the behaviors of a single check, under fixed and changing limits. */
export function counting({ group, behaves, behavesWithEach }: StoreSuite): void {
  group("one check", () => {
    behavesWithEach("admits up to the limit, and does not count refused requests", async (store, policy) => {
      const ledger: [granted: boolean, taken: number, current: number][] = []
      for (const cost of [4, 7, 5, 2, 1, 1]) {
        const { granted, checks } = await takeOne(store, check(policy, cost))
        ledger.push([granted, only(checks).taken, currentOf(checks)])
      }
      expect(ledger).toEqual([
        [true, 4, 4],
        [false, 0, 4],
        [true, 5, 9],
        [false, 0, 9],
        [true, 1, 10],
        [false, 0, 10],
      ])
    })

    behavesWithEach(
      "returns the time of the decision, in whole milliseconds",
      async (store, policy, clock) => {
        clock.advance(1_234.75)
        const nowMs = Math.floor(clock.now())
        expect((await takeOne(store, check(policy))).nowMs).toBe(nowMs)
        expect((await takeOne(store, check(policy, 11))).nowMs).toBe(nowMs)
        expect((await peekOne(store, check(policy))).nowMs).toBe(nowMs)
      },
    )

    behavesWithEach("returns the start of the window in which it counts", async (store, policy, clock) => {
      const startMs = clock.now()
      clock.advance(25_000)
      const { first, second } = STARTS_MS[policy.name] ?? { first: 0, second: 0 }
      expect(stateOf(await takeOne(store, check(policy))).startMs).toBe(startMs + first)
      clock.advance(10_000)
      expect(stateOf(await takeOne(store, check(policy))).startMs).toBe(startMs + second)
      expect(stateOf(await takeOne(store, check(policy, 11))).startMs).toBe(startMs + second)
    })

    behavesWithEach(
      "admits a cost of 0 and takes nothing, even if the limit is reached",
      async (store, policy) => {
        await takeOne(store, check(policy, 10))
        const { granted, checks } = await takeOne(store, check(policy, 0))
        expect([granted, only(checks).taken, currentOf(checks)]).toEqual([true, 0, 10])
      },
    )

    behavesWithEach("refuses a cost above the limit, and takes nothing", async (store, policy) => {
      const { granted, checks } = await takeOne(store, check(policy, 11))
      expect([granted, only(checks).taken, currentOf(checks)]).toEqual([false, 0, 0])
      expect((await takeOne(store, check(policy, 10))).granted).toBe(true)
    })

    behavesWithEach(
      "admits nothing under a limit of 0, and refuses without an error",
      async (store, policy) => {
        const none = withCeiling(policy, 0)
        expect((await takeOne(store, check(none, 1))).granted).toBe(false)
        expect((await takeOne(store, check(none, 0))).granted).toBe(true)
      },
    )

    behavesWithEach("counts exactly up to the largest supported number", async (store, policy, clock) => {
      const most = mostOf(policy)
      const vast = withCeiling(policy, most)
      expect((await takeOne(store, check(policy, most))).granted).toBe(false)
      expect((await takeOne(store, check(vast, most - 1))).granted).toBe(true)
      expect((await takeOne(store, check(vast, 2))).granted).toBe(false)
      expect((await takeOne(store, check(vast, most))).granted).toBe(false)
      const { granted, checks } = await takeOne(store, check(vast, 1))
      expect([granted, currentOf(checks)]).toEqual([true, most])
      expect((await takeOne(store, check(vast, 1))).granted).toBe(false)
      clock.advance(2 * MINUTE)
      expect((await takeOne(store, check(vast, most))).granted).toBe(true)
    })

    behaves("weights a previous window of 2^53 - 1 units exactly", async (store, clock) => {
      const vast = { ...SLIDING, limit: MOST }
      await takeOne(store, check(vast, MOST))
      clock.advance(MINUTE + MINUTE / 2)
      const free = MOST - Math.floor(MOST / 2)
      expect((await takeOne(store, check(vast, free + 1))).granted).toBe(false)
      expect((await takeOne(store, check(vast, free))).granted).toBe(true)
    })

    behaves(
      "weights the previous window by the share that the sliding window still covers",
      async (store, clock) => {
        const policy = { ...SLIDING, limit: 50 }
        await takeOne(store, check(policy, 50))
        clock.advance(MINUTE + 24_600)
        const at40 = { ...policy, limit: 40 }
        const first = await takeOne(store, check(at40, 10))
        expect(only(first.checks)).toMatchObject({ state: { previous: 50, current: 10 }, taken: 10 })
        expect((await takeOne(store, check(at40, 1))).granted).toBe(true)
        expect((await takeOne(store, check(at40, 1))).granted).toBe(false)
        clock.advance(600)
        expect((await takeOne(store, check(at40, 1))).granted).toBe(false)
        clock.advance(1)
        expect((await takeOne(store, check(at40, 1))).granted).toBe(true)
      },
    )

    behaves("forgets a window when the next window has ended", async (store, clock) => {
      await takeOne(store, check(SLIDING, 10))
      clock.advance(2 * MINUTE - 1)
      expect(await countOf(store, SLIDING)).toBe(10)
      clock.advance(1)
      expect(await countOf(store, SLIDING)).toBe(0)
    })

    behaves(
      "starts a fixed window at a multiple of its length, or at the first request",
      async (store, clock) => {
        clock.advance(20_000)
        const opened: [fixed: boolean, firstHit: boolean][] = []
        for (const afterMs of [0, 0, 39_999, 1, 19_999, 1]) {
          clock.advance(afterMs)
          const fixed = await takeOne(store, check(FIXED, 10))
          const firstHit = await takeOne(store, check(FIRST_HIT, 10))
          opened.push([fixed.granted, firstHit.granted])
        }
        expect(opened).toEqual([
          [true, true],
          [false, false],
          [false, false],
          [true, false],
          [false, false],
          [false, true],
        ])
      },
    )
  })

  group("a limit that changes", () => {
    behavesWithEach(
      "keeps its counts, and admits more requests immediately when it is raised",
      async (store, policy) => {
        await takeOne(store, check(policy, 10))
        const raised = withCeiling(policy, 12)
        expect((await takeOne(store, check(raised, 3))).granted).toBe(false)
        expect((await takeOne(store, check(raised, 2))).granted).toBe(true)
      },
    )

    behavesWithEach(
      "keeps its counts, and refuses until they have fallen when it is lowered",
      async (store, policy, clock) => {
        await takeOne(store, check(policy, 10))
        const cut = withCeiling(policy, 4)
        const { granted, checks } = await takeOne(store, check(cut, 1))
        expect([granted, currentOf(checks)]).toEqual([false, 10])
        expect((await takeOne(store, check(cut, 0))).granted).toBe(true)
        // The bucket drains ten units at four per minute.
        clock.advance((isBucket(policy) ? 3 : 2) * MINUTE)
        expect((await takeOne(store, check(cut, 4))).granted).toBe(true)
      },
    )
  })
}
