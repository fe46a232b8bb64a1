import { memoryStore, type Store, StoreUnavailableError } from "@sluice/core"
import {
  algorithmOf,
  type CounterState,
  type Policy,
  peekStore,
  type Refund,
  type StoreResult,
} from "@sluice/core/stores"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { examples } from "../../../../test/test-length.ts"
import { methodsOf } from "../../../core/src/stores/testing/methods-of.ts"
import { boundariesOf, touchesTwoMs } from "../testing/periods.ts"
import { Simulation } from "../testing/simulation.ts"
import { mirroredStore } from "./mirrored-store.ts"

const RUNS = examples(25, 150)
const EVERY_MS = 100
const LONGEST_WAY_MS = 80
const WINDOW_MS = 2_000
/** A charge waits for everyMs, or for the reply to the previous charge. */
const TOLD_MS = Math.max(EVERY_MS, 2 * LONGEST_WAY_MS) + 1 + LONGEST_WAY_MS

const COUNTINGS: readonly Omit<Policy, "limit" | "windowMs">[] = [
  { name: "two windows", counter: "two", algorithm: "sliding-window", align: "epoch" },
  { name: "sub-windows", counter: "sub", algorithm: "sliding-window", align: "epoch", buckets: 10 },
  { name: "strict", counter: "strict", algorithm: "sliding-window-strict", align: "epoch", buckets: 10 },
  { name: "fixed", counter: "fixed", algorithm: "fixed-window", align: "epoch" },
  {
    ...{ name: "calendar", counter: "calendar", algorithm: "fixed-window", align: "epoch" },
    periods: boundariesOf(WINDOW_MS),
  },
  { name: "log", counter: "log", algorithm: "sliding-log", align: "epoch" },
]

interface Step {
  readonly afterMs: number
  readonly center: number
  readonly what:
    | { readonly kind: "ask"; readonly cost: number; readonly requests: number }
    | { readonly kind: "refund"; readonly nth: number }
    /** The center is cut off from all other centers for some time. */
    | { readonly kind: "cut"; readonly forMs: number }
}

interface Story {
  readonly counting: Omit<Policy, "limit" | "windowMs">
  readonly limit: number
  readonly centers: number
  readonly startMs: number
  readonly waysMs: readonly number[]
  readonly steps: readonly Step[]
}

interface Grant {
  readonly center: number
  readonly atMs: number
  readonly units: number
  readonly after: CounterState
  isRefunded: boolean
}

/**
 * Runs a story. Returns the units of each center's counter after a silence, and the grants that should have been
 * refused.
 */
async function run({ counting, limit, centers, startMs, waysMs, steps }: Story, silenceMs: number) {
  const simulation = new Simulation(startMs)
  const policy: Policy = { ...counting, limit, windowMs: WINDOW_MS }
  const algorithm = algorithmOf(policy)
  const clock = { now: () => Math.floor(simulation.nowMs) }
  const shared = Array.from({ length: centers }, () => memoryStore({ clock }))
  const cutUntilMs = shared.map(() => 0)
  const isCut = (i: number) => simulation.nowMs < (cutUntilMs[i] as number)
  let ways = 0
  const way = (): Promise<void> =>
    new Promise((resolve) => simulation.after(waysMs[ways++ % waysMs.length] as number, resolve))

  const far = (from: number, to: number): Store => ({
    ...methodsOf(shared[to] as Store),
    ...{ isShared: true, keepsDeadline: true },
    async refund(refunds: readonly Refund[]) {
      if (isCut(from) || isCut(to)) throw new StoreUnavailableError("cut")
      await way()
      shared[to]?.refund(refunds)
      await way()
    },
  })
  const stores = shared.map((memory, from) => {
    const others = shared.flatMap((_, to) => (to === from ? [] : [[`${to}`, far(from, to)] as const]))
    const near: Store = { ...methodsOf(memory), isShared: true }
    return mirroredStore({
      near,
      far: Object.fromEntries(others),
      everyMs: EVERY_MS,
      clock: simulation.clock(from * 1_234.5),
    })
  })

  const grants: Grant[] = []
  const excess: string[] = []
  /**
   * Returns the exact counter of a center, with its own grants and the grants of others that were charged to it by
   * this time.
   */
  function known(center: number, atMs: number): CounterState {
    let state = algorithm.at(undefined, policy, atMs)
    for (const grant of grants) {
      const isOwn = grant.center === center
      const isTold = isOwn || grant.atMs + TOLD_MS < atMs
      if (!isTold || grant.isRefunded) continue
      state = algorithm.withoutUnits(state, policy, -grant.units, grant.after, atMs)
    }
    return state
  }
  function ask(center: number, cost: number): void {
    const answers = stores[center]?.take([{ policy, partition: "", cost, shadow: false }])
    const answer = answers as StoreResult
    if (answer?.granted !== true) return
    const atMs = answer.nowMs
    const mayBeTold = cutUntilMs.every((untilMs) => untilMs === 0)
    if (mayBeTold && !algorithm.admits(known(center, atMs), policy, cost, atMs))
      excess.push(`${cost} at ${atMs}`)
    grants.push({
      center,
      atMs,
      units: cost,
      after: answer.checks[0]?.state as CounterState,
      isRefunded: false,
    })
  }
  for (const { afterMs, center: place, what } of steps) {
    await simulation.pass(afterMs)
    const center = place % centers
    if (what.kind === "cut") cutUntilMs[center] = simulation.nowMs + what.forMs
    else if (what.kind === "ask") for (let i = 0; i < what.requests; i++) ask(center, what.cost)
    else if (grants.length > 0) {
      const grant = grants[what.nth % grants.length] as Grant
      const { units, after } = grant
      if (grant.isRefunded) continue
      grant.isRefunded = true
      await stores[grant.center]?.refund([{ policy, partition: "", units, after }])
    }
  }
  await simulation.pass(silenceMs)
  // A later refusal must not depend on the center.
  const counts = shared.map((memory) => {
    const answers = peekStore(memory, [{ policy, partition: "", cost: 0, shadow: false }])
    const { state } = (answers as StoreResult).checks[0] ?? {}
    return [state?.current, state?.previous, algorithm.used(state as CounterState, policy, clock.now())]
  })
  const exact = shared.map(() => {
    let state = algorithm.at(undefined, policy, clock.now())
    for (const { units, after, isRefunded } of grants) {
      if (!isRefunded) state = algorithm.withoutUnits(state, policy, -units, after, clock.now())
    }
    return [state.current, state.previous, algorithm.used(state, policy, clock.now())]
  })
  return { excess, counts, exact, grants, policy, stores }
}

function stories({ cuts }: { readonly cuts: boolean }): fc.Arbitrary<Story> {
  const what: fc.Arbitrary<Step["what"]> = fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        kind: fc.constant("ask" as const),
        cost: fc.integer({ min: 1, max: 3 }),
        requests: fc.integer({ min: 1, max: 8 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("refund" as const), nth: fc.nat(1_000) }),
    },
    ...(cuts
      ? [
          {
            weight: 2,
            arbitrary: fc.record({
              kind: fc.constant("cut" as const),
              forMs: fc.integer({ min: 1, max: 3_000 }),
            }),
          },
        ]
      : []),
  )
  return fc.record({
    counting: fc.constantFrom(...COUNTINGS),
    limit: fc.constantFrom(10, 50, 200),
    centers: fc.integer({ min: 2, max: 4 }),
    startMs: fc.nat(WINDOW_MS).map((offset) => Date.UTC(2024, 0, 1) + offset),
    waysMs: fc.array(fc.integer({ min: 0, max: LONGEST_WAY_MS }), { minLength: 1, maxLength: 9 }),
    steps: fc.array(
      fc.record({
        afterMs: fc.oneof(fc.nat(30), fc.nat(200), fc.nat(900)),
        center: fc.nat(3),
        what,
      }),
      { minLength: 10, maxLength: 70 },
    ),
  })
}

/** Time until all charges have arrived. */
const QUIET_MS = EVERY_MS + TOLD_MS + 1

describe("data centers that mirror each other", () => {
  it("have the same counts once all charges have arrived, and these counts equal all grants", async () => {
    await fc.assert(
      fc.asyncProperty(stories({ cuts: false }), async (story) => {
        const { counts, exact } = await run(story, QUIET_MS)
        expect(counts).toEqual(exact)
      }),
      { seed: 51, numRuns: RUNS },
    )
  })

  it("exceed a limit only by units that others granted within everyMs and the one-way latency", async () => {
    let granted = 0
    await fc.assert(
      fc.asyncProperty(stories({ cuts: false }), async (story) => {
        const { excess, grants } = await run(story, 0)
        granted += grants.length
        expect(excess).toEqual([])
      }),
      { seed: 52, numRuns: RUNS },
    )
    expect(granted).toBeGreaterThan(10 * RUNS)
  })

  it("agree two windows after a partition, in which no center admits more than it would alone", async () => {
    let lost = 0
    await fc.assert(
      fc.asyncProperty(stories({ cuts: true }), async (story) => {
        const { counts, grants, policy, stores } = await run(story, 3_000 + 2 * WINDOW_MS + QUIET_MS)
        lost += stores.reduce(
          (sum, store) => sum + Object.values(store.status?.mirrors ?? {}).reduce((n, m) => n + m.lost, 0),
          0,
        )
        expect(new Set(counts.map((count) => `${count}`)).size).toBe(1)
        // Each side grants at most the worst case of its algorithm. A refund of units whose charge was lost must not
        // subtract units of other requests.
        const isStrict = ["strict", "log"].includes(story.counting.name)
        const most = (isStrict ? 1 : 2) * policy.limit
        for (let center = 0; center < story.centers; center++) {
          const own = grants.filter((grant) => grant.center === center && !grant.isRefunded)
          for (const { atMs } of own) {
            const within = own.filter(
              (other) => other.atMs >= atMs && other.atMs < atMs + touchesTwoMs(policy),
            )
            const units = within.reduce((sum, grant) => sum + grant.units, 0)
            expect(units).toBeLessThanOrEqual(most)
          }
        }
      }),
      { seed: 53, numRuns: RUNS },
    )
    expect(lost).toBeGreaterThan(RUNS / 2)
  })
})
