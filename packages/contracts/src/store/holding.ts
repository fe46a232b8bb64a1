import type { Store } from "@sluice/core"
import { type Check, type CounterState, capacityOf, type Policy } from "@sluice/core/stores"
import { expect } from "expect"
import {
  check,
  countOf,
  HOUR,
  HOURLY,
  MINUTE,
  only,
  PERMITS,
  peekOne,
  RATES,
  SLIDING,
  type StoreSuite,
  stateOf,
  takeOne,
} from "./asking.ts"

/** The permits of a window, and of the window before it. */
type TwoCounts = readonly [previous: number, current: number]

/** Takes permits, and returns the state in which they are counted. */
async function take(store: Store, permits: number, policy = PERMITS): Promise<CounterState> {
  const taken = await takeOne(store, check(policy, permits))
  expect(taken.granted).toBe(true)
  return stateOf(taken)
}

async function isRefused(store: Store, ...checks: readonly Check[]): Promise<boolean> {
  return !(await store.take(checks)).granted
}

async function windowsOf(store: Store, policy = PERMITS): Promise<TwoCounts> {
  const { previous, current } = stateOf(await peekOne(store, check(policy, 0)))
  return [previous, current]
}

/** Releases permits that were last counted in the window of `after`. */
async function release(store: Store, permits: number, after: CounterState): Promise<void> {
  await store.refund([{ policy: PERMITS, partition: "alice", units: permits, after }])
}

/** Renews permits that were last counted in the window of `after`. */
function renew(store: Store, permits: number, after: CounterState): Promise<void> {
  return release(store, -permits, after)
}

/** Adds the behaviors of permits, which requests hold while they are in progress. */
export function holding({ group, behaves, behavesWithEach }: StoreSuite): void {
  group("permits", () => {
    behaves("count in full in two windows, and then end", async (store, clock) => {
      await take(store, 4)
      clock.advance(MINUTE)
      await take(store, 6)
      expect(await windowsOf(store)).toEqual([4, 6])
      clock.advance(MINUTE - 1)
      expect(await isRefused(store, check(PERMITS))).toBe(true)
      clock.advance(1)
      expect(await windowsOf(store)).toEqual([6, 0])
      expect(await isRefused(store, check(PERMITS, 5))).toBe(true)
      await take(store, 4)
      clock.advance(MINUTE)
      expect(await windowsOf(store)).toEqual([4, 0])
    })

    behaves("are taken above the limit as far as extra units are admitted", async (store) => {
      const soft: Policy = { ...PERMITS, limit: 7, extra: 3 }
      await take(store, 10, soft)
      expect([await isRefused(store, check(soft)), await countOf(store, soft)]).toEqual([true, 10])
    })

    behaves("are taken together with the units of all rates", async (store) => {
      const { granted, checks } = await takeOne(
        store,
        ...RATES.map((rate) => check(rate, 3)),
        check(PERMITS, 2),
      )
      expect([granted, ...checks.map(({ taken }) => taken)]).toEqual([true, ...RATES.map(() => 3), 2])
      for (const rate of RATES) expect([rate.name, await countOf(store, rate)]).toEqual([rate.name, 3])
      expect(await countOf(store, PERMITS)).toBe(2)
    })

    behavesWithEach(
      "that are missing leave the rate of the request unchanged, in either order",
      async (store, rate) => {
        await take(store, 10)
        await takeOne(store, check(rate, 3))
        expect(await isRefused(store, check(rate, 2), check(PERMITS))).toBe(true)
        expect(await isRefused(store, check(PERMITS), check(rate, 2))).toBe(true)
        expect(await countOf(store, rate)).toBe(3)
        expect((await takeOne(store, check(rate, 7))).granted).toBe(true)
      },
      RATES,
    )

    behavesWithEach(
      "are not taken if the rate of the request refuses, in either order",
      async (store, rate) => {
        await take(store, 3)
        await takeOne(store, check(rate, capacityOf(rate)))
        const more = check(rate, 1 + (rate.extra ?? 0))
        expect(await isRefused(store, more, check(PERMITS))).toBe(true)
        expect(await isRefused(store, check(PERMITS), more)).toBe(true)
        expect(await countOf(store, PERMITS)).toBe(3)
        await take(store, 7)
      },
      RATES,
    )

    behaves("of a shadow check are held if they fit, and released like others", async (store) => {
      const shadow = { shadow: true } as const
      const held = await takeOne(store, check(PERMITS, 8, shadow), check(HOURLY))
      const none = await takeOne(store, check(PERMITS, 3, shadow), check(HOURLY))
      expect([held, none].map(({ granted, checks }) => [granted, checks[0]?.taken])).toEqual([
        [true, 8],
        [true, 0],
      ])
      await release(store, 8, stateOf({ ...held, checks: held.checks.slice(0, 1) }))
      expect([await countOf(store, PERMITS), await countOf(store, HOURLY)]).toEqual([0, 2])
    })

    behaves("that are all released can be taken again in a later window", async (store, clock) => {
      await release(store, 3, await take(store, 3))
      clock.advance(MINUTE + MINUTE / 2)
      const after = await take(store, 10)
      clock.advance(MINUTE)
      expect(await windowsOf(store)).toEqual([10, 0])
      await release(store, 10, after)
      expect(await windowsOf(store)).toEqual([0, 0])
    })
  })

  group("a release of permits", () => {
    behaves(
      "removes them from the window in which they were counted, but not below 0",
      async (store, clock) => {
        const first = await take(store, 4)
        clock.advance(MINUTE)
        const second = await take(store, 5)
        const ledger: TwoCounts[] = []
        for (const [permits, after] of [
          [1, first],
          [1, second],
          [9, first],
          [3, second],
          [9, second],
        ] as const) {
          await release(store, permits, after)
          ledger.push(await windowsOf(store))
        }
        expect(ledger).toEqual([
          [3, 5],
          [3, 4],
          [0, 4],
          [0, 1],
          [0, 0],
        ])
      },
    )

    behaves("admits the next request immediately", async (store, clock) => {
      const after = await take(store, 10)
      clock.advance(MINUTE)
      for (let i = 0; i < 3; i++) {
        expect(await isRefused(store, check(PERMITS))).toBe(true)
        await release(store, 1, after)
        await take(store, 1)
      }
      expect(await windowsOf(store)).toEqual([7, 3])
    })

    behaves("changes nothing if the permits have ended", async (store, clock) => {
      const ended = await take(store, 4)
      clock.advance(2 * MINUTE)
      await release(store, 4, ended)
      await take(store, 3)
      await release(store, 4, ended)
      clock.advance(MINUTE)
      await take(store, 2)
      await release(store, 4, ended)
      expect(await windowsOf(store)).toEqual([3, 2])
    })

    behaves(
      "removes permits from the current window after the clock has stepped back",
      async (store, clock) => {
        const first = await take(store, 2)
        clock.advance(MINUTE)
        const second = await take(store, 3)
        clock.advance(-HOUR)
        await release(store, 1, first)
        await release(store, 2, second)
        expect(await windowsOf(store)).toEqual([0, 2])
      },
    )
  })

  group("a renewal of permits", () => {
    behaves("moves them to the current window", async (store, clock) => {
      const after = await take(store, 5)
      clock.advance(MINUTE + MINUTE / 4)
      await renew(store, 2, after)
      expect(await windowsOf(store)).toEqual([3, 2])
      await take(store, 5)
      clock.advance(MINUTE)
      expect(await windowsOf(store)).toEqual([7, 0])
    })

    behaves("changes nothing if they already count in the current window", async (store) => {
      const after = await take(store, 5)
      for (const permits of [3, 5]) await renew(store, permits, after)
      expect(await windowsOf(store)).toEqual([0, 5])
    })

    behaves("keeps them for two windows from the latest renewal, and no longer", async (store, clock) => {
      let after = await take(store, 10)
      for (let part = 0; part < 5; part++) {
        clock.advance(MINUTE)
        await renew(store, 10, after)
        after = { ...after, startMs: after.startMs + MINUTE }
      }
      clock.advance(2 * MINUTE - 1)
      expect(await isRefused(store, check(PERMITS))).toBe(true)
      clock.advance(1)
      await take(store, 10)
    })

    behaves("adds those that are missing, even above the limit", async (store, clock) => {
      const after = await take(store, 10)
      clock.advance(MINUTE)
      await store.reset([{ policy: PERMITS, partition: "alice" }])
      await take(store, 9)
      await renew(store, 10, after)
      expect(await windowsOf(store)).toEqual([0, 19])
      const present = { ...after, startMs: after.startMs + MINUTE }
      await release(store, 9, present)
      expect(await isRefused(store, check(PERMITS))).toBe(true)
      await release(store, 1, present)
      await take(store, 1)
    })

    behaves(
      "counts them again after they have ended, also in a counter without permits",
      async (store, clock) => {
        const after = await take(store, 4)
        clock.advance(5 * MINUTE)
        await renew(store, 4, after)
        expect(await windowsOf(store)).toEqual([0, 4])
        await renew(store, 2, after)
        expect(await windowsOf(store)).toEqual([0, 6])
      },
    )

    behaves("and later a release leave the permits of others unchanged", async (store, clock) => {
      await take(store, 2)
      const after = await take(store, 3)
      clock.advance(MINUTE)
      await take(store, 4)
      await renew(store, 3, after)
      expect(await windowsOf(store)).toEqual([2, 7])
      await release(store, 3, { ...after, startMs: after.startMs + MINUTE })
      expect(await windowsOf(store)).toEqual([2, 4])
    })

    behaves("moves them to the current window after the clock has stepped back", async (store, clock) => {
      const first = await take(store, 2)
      clock.advance(MINUTE)
      const second = await take(store, 3)
      clock.advance(-HOUR)
      await renew(store, 2, first)
      await renew(store, 3, second)
      expect(await windowsOf(store)).toEqual([0, 5])
    })

    behaves("is applied in the order of one call, beside refunds of rates", async (store, clock) => {
      const { checks } = await takeOne(store, check(SLIDING, 6), check(PERMITS, 5))
      const [rate, permits] = checks.map(({ state }) => state) as [CounterState, CounterState]
      clock.advance(MINUTE)
      const present = { ...permits, startMs: permits.startMs + MINUTE }
      const counter = { policy: PERMITS, partition: "alice" }
      await store.refund([
        { ...counter, units: -5, after: permits },
        { policy: SLIDING, partition: "alice", units: 4, after: rate },
        { ...counter, units: 2, after: present },
        { ...counter, units: 1, after: permits },
      ])
      expect(await windowsOf(store)).toEqual([0, 3])
      expect(await windowsOf(store, SLIDING)).toEqual([2, 0])
    })

    behaves("does not change another counter or partition", async (store, clock) => {
      const after = await take(store, 5)
      clock.advance(MINUTE)
      await store.refund([
        { policy: { ...PERMITS, counter: "if-other" }, partition: "alice", units: -5, after },
        { policy: PERMITS, partition: "bob", units: -5, after },
      ])
      expect(await windowsOf(store)).toEqual([5, 0])
      const { counters } = await store.read([check(PERMITS, 0, { partition: "bob" })])
      expect(only(counters).state).toMatchObject({ previous: 0, current: 5 })
    })
  })
}
