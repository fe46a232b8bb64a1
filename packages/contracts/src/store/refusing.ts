import type { Store } from "@sluice/core"
import { algorithmOf, type Check, type Policy } from "@sluice/core/stores"
import { expect } from "expect"
import {
  check,
  countOf,
  currentOf,
  HOURLY,
  peekOne,
  RATES,
  type StoreSuite,
  takeInOrder,
  takeOne,
  waitOf,
} from "./asking.ts"

/**
 * How long a client that requests one unit must wait, keyed by policy. Ten units were taken when the window started,
 * and ten more were requested after 15 s.
 */
const WAITS_MS: Readonly<Record<string, number>> = {
  sliding: 45_001,
  extra: 45_001,
  "sub-windows": 60_001,
  strict: 61_000,
  log: 60_001,
  fixed: 45_000,
  "first-hit": 45_000,
  calendar: 45_000,
  token: 6_000,
  burst: 3_000,
  periodic: 45_000,
  leaky: 6_000,
}

function counting(policy: Policy): Policy {
  return { ...policy, countRejected: true }
}

/** Returns whether the check was granted, and the units in its counter afterwards. */
async function asked(store: Store, one: Check): Promise<[granted: boolean, current: number]> {
  const { granted, checks } = await takeOne(store, one)
  return [granted, currentOf(checks)]
}

/** Adds the behaviors of policies that count refused requests. A rule with permits cannot count them. */
export function refusing({ group, behavesWithEach }: StoreSuite): void {
  const behavesWithRates: StoreSuite["behavesWithEach"] = (behaviour, show) =>
    behavesWithEach(behaviour, show, RATES)

  group("a policy under which refused requests count", () => {
    behavesWithRates("counts refused units up to the ceiling", async (store, policy) => {
      const counted = counting(policy)
      const ledger = []
      for (const cost of [7, 5, 10, 1]) ledger.push(await asked(store, check(counted, cost)))
      expect(ledger).toEqual([
        [true, 7],
        [false, 10],
        [false, 10],
        [false, 10],
      ])
      expect(await countOf(store, counted)).toBe(10)
    })

    behavesWithRates("does not count a cost above the limit or a shadow check", async (store, policy) => {
      const counted = counting(policy)
      await takeOne(store, check(counted, 7))
      expect(await asked(store, check(counted, 11))).toEqual([false, 7])
      expect(await asked(store, check(counted, 5, { shadow: true }))).toEqual([true, 7])
      const [granted] = [await takeOne(store, check(counted, 5, { shadow: true }), check(HOURLY))]
      expect([granted.granted, await countOf(store, counted)]).toEqual([true, 7])
      // Another check refuses the request, which does not affect the shadow check.
      await takeOne(store, check(counted, 5, { shadow: true }), check(HOURLY, 15))
      expect(await countOf(store, counted)).toBe(7)
    })

    behavesWithRates("counts nothing for a peek", async (store, policy) => {
      const counted = counting(policy)
      await takeOne(store, check(counted, 7))
      expect((await peekOne(store, check(counted, 5))).granted).toBe(false)
      expect(await countOf(store, counted)).toBe(7)
    })

    behavesWithRates("counts each of several equal requests", async (store, policy) => {
      const counted = counting(policy)
      const answers = await takeInOrder(
        store,
        [4, 4, 4, 4].map((cost) => [check(counted, cost)]),
      )
      expect(answers.map(({ granted, checks }) => [granted, currentOf(checks)])).toEqual([
        [true, 4],
        [true, 8],
        [false, 10],
        [false, 10],
      ])
    })

    behavesWithRates(
      "returns the wait of a refused check that the algorithm computes, if it returns one",
      async (store, policy) => {
        const [other, refusing] = [check(HOURLY, 1), check(counting(policy), 7)]
        await takeOne(store, check(counting(policy), 7))
        for (const checks of [[refusing], [other, refusing]]) {
          const { nowMs, checks: results } = await store.take(checks)
          const counted = results.at(-1)
          if (counted?.retryAfterMs === undefined) continue
          expect(counted.retryAfterMs).toBe(
            algorithmOf(refusing.policy).retryAfterMs(counted.state, refusing.policy, refusing.cost, nowMs),
          )
        }
      },
    )

    behavesWithRates("returns the exact wait to a client that keeps asking", async (store, policy, clock) => {
      const counted = counting(policy)
      await takeOne(store, check(counted, 10))
      clock.advance(15_000)
      const refused = await takeOne(store, check(counted, 10))
      const one = check(counted, 1)
      expect([policy.name, refused.granted, waitOf(refused, one)]).toEqual([
        policy.name,
        false,
        WAITS_MS[policy.name],
      ])
      clock.advance(waitOf(refused, one) - 1)
      expect((await peekOne(store, one)).granted).toBe(false)
      clock.advance(1)
      expect((await takeOne(store, one)).granted).toBe(true)
    })

    behavesWithRates(
      "counts only those checks of a refused request that refuse it themselves",
      async (store, policy) => {
        const counted = counting(policy)
        const hourly = counting(HOURLY)
        await takeOne(store, check(counted, 8))
        const refused = await takeOne(store, check(hourly, 3), check(counted, 5))
        expect([
          refused.granted,
          ...refused.checks.map(({ state, taken }) => [state.current, taken]),
        ]).toEqual([false, [0, 0], [10, 0]])
        expect([await countOf(store, hourly), await countOf(store, counted)]).toEqual([0, 10])
        // Both checks refuse, so both count the request, including the second check.
        await takeOne(store, check(hourly, 10))
        await takeOne(store, check(counted, 1), check(hourly, 9))
        expect(await countOf(store, hourly)).toBe(15)
      },
    )

    behavesWithRates("keeps its counts when refused requests no longer count", async (store, policy) => {
      await takeOne(store, check(counting(policy), 7))
      await takeOne(store, check(counting(policy), 5))
      expect(await asked(store, check(policy, 5))).toEqual([false, 10])
    })
  })
}
