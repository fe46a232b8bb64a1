import { memoryStore } from "@sluice/core"
import { beforeEach, describe, expect, it } from "vitest"
import type { CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { type ManualClock, manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { Store } from "../../packages/core/src/stores/store.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import type { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { compactStore } from "./compact-store.ts"
import { timeOf } from "./counted.ts"

const { server, client } = await redisForTests()
beforeEach(() => client.flushall())

/**
 * Creates a store on the server's clock or on a given clock. In both cases, the store uses the layout for the server's
 * clock.
 */
function open(clock?: ManualClock): RedisStore {
  return compactStore(client, clock)
}

/**
 * Returns a policy with this many sub-windows of about a day. The server's current time is in the middle of a
 * sub-window.
 */
async function policyOf(buckets: number): Promise<Policy> {
  const bucketMs = Math.floor((await timeOf(server)) / 20_000.5)
  return {
    name: "strict",
    counter: "strict",
    algorithm: "sliding-window-strict",
    limit: 1_000,
    windowMs: buckets * bucketMs,
    align: "epoch",
    buckets,
  }
}

type Taken = readonly (readonly [subWindowsAgo: number, units: number])[]

/**
 * Takes units in sub-windows up to the clock's time. If `returned`, refunds the units of the current sub-window.
 */
async function fill(
  store: Store,
  clock: ManualClock,
  policy: Policy,
  taken: Taken,
  returned: boolean,
): Promise<void> {
  const [nowMs, bucketMs] = [clock.now(), policy.windowMs / (policy.buckets as number)]
  const check = { policy, partition: "alice", shadow: false }
  for (const [ago, cost] of taken) {
    clock.set(nowMs - ago * bucketMs)
    const answer = await store.take([{ ...check, cost }])
    const after = answer?.checks[0]?.state as CounterState
    if (ago === 0 && returned) await store.refund([{ ...check, units: cost, after }])
  }
  clock.set(nowMs)
}

/**
 * Returns the state after the clock has gone back by `back` sub-windows and `cost` units were then taken.
 */
async function leftAfter(
  back: number,
  policy: Policy,
  taken: Taken,
  { returned, cost }: { readonly returned: boolean; readonly cost: number },
): Promise<{ readonly left: unknown; readonly expected: unknown }> {
  await client.flushall()
  const byMs = (back * policy.windowMs) / (policy.buckets as number)
  const nowMs = await timeOf(server)
  const clock = manualClock(nowMs + byMs)
  const check = { policy, partition: "alice", shadow: false }
  const [ahead, twin, store] = [open(clock), memoryStore({ clock }), open()]
  try {
    await fill(ahead, clock, policy, taken, returned)
    await fill(twin, clock, policy, taken, returned)
    // When the clock goes back, the key still expires at the same instant, so its TTL becomes longer.
    const key = keyNamer("")(check)
    const restMs = await client.pttl(key)
    expect(restMs).toBeGreaterThan(0)
    await client.pexpire(key, restMs + byMs)
    clock.set(nowMs)
    if (cost > 0) for (const each of [twin, store]) await each.take([{ ...check, cost }])
    const look = [{ ...check, cost: 0 }]
    const [expected, told] = [twin.read(look), await store.read(look)]
    return { left: told.counters[0]?.state, expected: expected.counters[0]?.state }
  } finally {
    for (const each of [ahead, twin, store]) each.close()
  }
}

describe.each([60, 251, 252, 360])("a strict window with %i sub-windows", (buckets) => {
  // The number of sub-windows from the current one back to the oldest.
  const last = buckets
  it.each([
    {
      what: "only the oldest sub-window",
      taken: [
        [last, 5],
        [0, 1],
      ],
      returned: true,
    },
    {
      what: "several sub-windows, but not in the current one",
      taken: [
        [last, 5],
        [100, 70],
        [30, 2],
        [0, 1],
      ],
      returned: true,
    },
    {
      what: "several sub-windows, also in the current one",
      taken: [
        [last, 5],
        [100, 70],
        [30, 2],
        [0, 1],
      ],
      returned: false,
    },
  ] as const)(
    "keeps every unit when the clock is set back, with units in $what",
    async ({ taken, returned }) => {
      const policy = await policyOf(buckets)
      const there = taken.filter(([ago]) => ago <= last)
      for (const back of [1, 9, 100, 142, 143, 150, 200, 251, 300, 359, 360, 400, 450, 500, 508, 509]) {
        for (const cost of [0, 1]) {
          const { left, expected } = await leftAfter(back, policy, there, { returned, cost })
          expect({ back, cost, parts: "", ...(left as object) }).toEqual({
            back,
            cost,
            ...(expected as object),
          })
        }
      }
    },
  )

  it("drops expired units when the clock moves forward", async () => {
    const policy = await policyOf(buckets)
    for (const on of [1, 2, 30, last]) {
      for (const cost of [0, 1]) {
        const taken = [
          [last - 30, 5],
          [1, 3],
          [0, 1],
        ] as const
        const { left, expected } = await leftAfter(-on, policy, taken.slice(on > 30 ? 1 : 0), {
          returned: false,
          cost,
        })
        expect({ on, cost, parts: "", ...(left as object) }).toEqual({ on, cost, ...(expected as object) })
      }
    }
  })
})
