import type { Check } from "@sluice/core/stores"
import { expect } from "expect"
import {
  check,
  countOf,
  currentOf,
  HOURLY,
  only,
  SLIDING,
  type StoreSuite,
  takeOne,
  withCeiling,
} from "./asking.ts"

/**
 * Adds the behaviors of requests with several checks, and of concurrent requests. `crowd` is the number of concurrent
 * requests, which must be even.
 */
export function together({ group, behaves, behavesWithEach }: StoreSuite, crowd: number): void {
  group("several checks of a request", () => {
    behavesWithEach("take from all of their counters", async (store, policy) => {
      const { granted, checks } = await takeOne(store, check(HOURLY, 2), check(policy, 3))
      expect([granted, ...checks.map(({ taken }) => taken)]).toEqual([true, 2, 3])
      expect([await countOf(store, HOURLY), await countOf(store, policy)]).toEqual([2, 3])
    })

    behavesWithEach("take from no counter if the last check refuses", async (store, policy) => {
      await takeOne(store, check(policy, 10))
      const { granted, checks } = await takeOne(store, check(HOURLY, 2), check(policy, 1))
      expect([granted, ...checks.map(({ taken }) => taken)]).toEqual([false, 0, 0])
      expect(checks.map(({ state }) => state.current)).toEqual([0, 10])
      expect([await countOf(store, HOURLY), await countOf(store, policy)]).toEqual([0, 10])
    })

    behavesWithEach("take from no counter if the first check refuses", async (store, policy) => {
      await takeOne(store, check(policy, 10))
      expect((await takeOne(store, check(policy, 1), check(HOURLY, 2))).granted).toBe(false)
      expect(await countOf(store, HOURLY)).toBe(0)
    })

    behaves("take from no counter if a check in the middle of many refuses", async (store) => {
      const many = Array.from({ length: 12 }, (_, i) => check(SLIDING, 1, { partition: `client ${i}` }))
      await takeOne(store, check(SLIDING, 10, { partition: "client 6" }))
      expect((await store.take(many)).granted).toBe(false)
      expect(await countOf(store, SLIDING, "client 0")).toBe(0)
      expect(await countOf(store, SLIDING, "client 11")).toBe(0)
    })

    behavesWithEach(
      "with a cost of 0 never refuse, but do not overrule a check that refuses",
      async (store, policy) => {
        await takeOne(store, check(policy, 10))
        expect((await takeOne(store, check(policy, 0), check(HOURLY, 1))).granted).toBe(true)
        expect((await takeOne(store, check(policy, 1), check(HOURLY, 0))).granted).toBe(false)
      },
    )

    behavesWithEach("add up their units if they share a counter", async (store, policy) => {
      const fits = await takeOne(store, check(policy, 4), check(policy, 6))
      expect(fits.granted).toBe(true)
      expect(fits.checks.map(({ state, taken }) => [state.current, taken])).toEqual([
        [4, 4],
        [10, 6],
      ])
      expect(await countOf(store, policy)).toBe(10)
    })

    behavesWithEach(
      "refuse if they share a counter that has room for only one of them",
      async (store, policy) => {
        expect((await takeOne(store, check(policy, 6), check(policy, 5))).granted).toBe(false)
        expect(await countOf(store, policy)).toBe(0)
      },
    )

    behaves("are not required: a request without checks is admitted", async (store) => {
      const { granted, checks } = await takeOne(store)
      expect([granted, checks]).toEqual([true, []])
    })
  })

  group("concurrent requests", () => {
    behavesWithEach("are admitted exactly up to the limit", async (store, policy) => {
      const half = Math.floor(crowd / 2)
      const wide = withCeiling(policy, half)
      const answers = await Promise.all(
        Array.from({ length: 2 * half }, async () => takeOne(store, check(wide))),
      )
      expect(answers.filter(({ granted }) => granted)).toHaveLength(half)
      expect(await countOf(store, wide)).toBe(half)
    })

    behaves("take from all of their counters or none", async (store) => {
      const narrow = { ...SLIDING, counter: "narrow", limit: 30 }
      const wide = { ...HOURLY, counter: "wide", limit: 1_000 }
      const ask = async (...checks: Check[]) => takeOne(store, ...checks)
      await Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          i % 2 ? ask(check(wide), check(narrow)) : ask(check(narrow), check(wide)),
        ),
      )
      expect([await countOf(store, narrow), await countOf(store, wide)]).toEqual([30, 30])
    })
  })

  group("shadow checks", () => {
    const shadow = { shadow: true } as const

    behavesWithEach("are counted if they fit", async (store, policy) => {
      const { granted, checks } = await takeOne(store, check(policy, 3, shadow))
      expect([granted, only(checks).taken, currentOf(checks)]).toEqual([true, 3, 3])
    })

    behavesWithEach("take nothing and refuse nothing if they do not fit", async (store, policy) => {
      const { granted, checks } = await takeOne(store, check(policy, 11, shadow))
      expect([granted, only(checks).taken, currentOf(checks)]).toEqual([true, 0, 0])
    })

    behavesWithEach("do not stop other checks if they do not fit", async (store, policy) => {
      await takeOne(store, check(policy, 10))
      const { granted, checks } = await takeOne(store, check(policy, 1, shadow), check(HOURLY, 2))
      expect([granted, ...checks.map(({ taken }) => taken)]).toEqual([true, 0, 2])
      expect([await countOf(store, policy), await countOf(store, HOURLY)]).toEqual([10, 2])
    })

    behavesWithEach("take nothing if a real check refuses, in either order", async (store, policy) => {
      await takeOne(store, check(HOURLY, 15))
      expect((await takeOne(store, check(policy, 1, shadow), check(HOURLY, 1))).granted).toBe(false)
      expect((await takeOne(store, check(HOURLY, 1), check(policy, 1, shadow))).granted).toBe(false)
      expect(await countOf(store, policy)).toBe(0)
    })
  })
}
