import type { Store } from "@sluice/core"
import type { Check, CounterState, Policy, StoreResult } from "@sluice/core/stores"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { expect } from "expect"
import fc from "fast-check"
import { type Trace, traces } from "../traces.ts"
import {
  check,
  FIRST_HIT,
  FIXED,
  HOUR,
  HOURLY,
  looked,
  MINUTE,
  PERMITS,
  SLIDING,
  type StoreSuite,
  withoutWaits,
} from "./asking.ts"
import { StoreModel } from "./model.ts"

/** Creates an empty store that uses this clock. */
type Create = (clock: ManualClock) => Store | Promise<Store>

/** Registers a behavior that is tested on many stores, one after another. */
export type Agrees = (behaviour: string, show: (create: Create) => Promise<void>) => void

/**
 * Adds the behaviors that compare a store with the naive reference on random traces. `part` scales the number of
 * traces.
 */
export function agreement({ group }: Pick<StoreSuite, "group">, agrees: Agrees, part: number): void {
  group("any trace", () => {
    agrees("agrees with the naive reference in every count of every result", async (create) => {
      await fc.assert(
        fc.asyncProperty(fc.array(operations(), { minLength: 1, maxLength: 40 }), (story) =>
          onStory(create, Date.UTC(2024, 0, 1) + 12_345, story, same),
        ),
        { seed: 6_001, numRuns: Math.ceil(100 * part) },
      )
    })

    agrees("with single requests, agrees with the naive reference in every result", async (create) => {
      await fc.assert(
        fc.asyncProperty(fc.array(operations(1), { minLength: 1, maxLength: 40 }), (story) =>
          onStory(create, Date.UTC(2024, 0, 1) + 12_345, story, sameAsTold),
        ),
        { seed: 6_003, numRuns: Math.ceil(50 * part) },
      )
    })

    agrees(
      "under rules that count refused requests, agrees with the naive reference in every count",
      async (create) => {
        // Each request is for one client, so that a cluster stores all counters of the request on one node.
        const story = fc.array(operations(3, ONE_CLIENT), { minLength: 1, maxLength: 40 })
        await fc.assert(
          fc.asyncProperty(story, (steps) =>
            onStory(create, Date.UTC(2024, 0, 1) + 12_345, steps, sameAsTold),
          ),
          { seed: 6_004, numRuns: Math.ceil(100 * part) },
        )
      },
    )

    for (const { what, counters, seed } of PERMIT_TRACES) {
      agrees(`${what}, agrees with the naive reference in every count`, async (create) => {
        const story = fc.array(operations(3, counters), { minLength: 1, maxLength: 40 })
        await fc.assert(
          fc.asyncProperty(story, (steps) =>
            onStory(create, Date.UTC(2024, 0, 1) + 12_345, steps, sameAsTold),
          ),
          { seed, numRuns: Math.ceil(100 * part) },
        )
      })
    }

    agrees("of a single client, agrees with the naive reference around every boundary", async (create) => {
      await fc.assert(
        fc.asyncProperty(
          traces({ windowsMs: [MINUTE, HOUR], countsRejected: true }),
          ({ policy, startMs, steps }: Trace) => {
            const story = steps.map(({ afterMs, cost }) => ({
              kind: "take" as const,
              afterMs,
              requests: [[check(policy, cost)]],
            }))
            return onStory(create, startMs, story, same)
          },
        ),
        { seed: 6_002, numRuns: Math.ceil(100 * part) },
      )
    })
  })
}

/** Compares the results of a store with the results of the reference. */
type Compare = (answers: readonly StoreResult[], expected: readonly StoreResult[]) => void

function same(answers: readonly StoreResult[], expected: readonly StoreResult[]): void {
  expect(answers.map(looked)).toEqual(expected)
}

/** Compares only the counters in the result, because a refusal may omit some counters. */
function sameAsTold(answers: readonly StoreResult[], expected: readonly StoreResult[]): void {
  const told = expected.map((answer, nth) => ({
    ...answer,
    checks: answer.checks.map((counted, i) =>
      !answer.granted && answers[nth]?.checks[i] === undefined ? undefined : counted,
    ),
  }))
  expect(answers.map(withoutWaits)).toEqual(told)
}

async function onStory(
  create: Create,
  startMs: number,
  story: readonly Operation[],
  compare: Compare,
): Promise<void> {
  const clock = manualClock(startMs)
  const store = await create(clock)
  try {
    await agree(store, clock, story, compare)
  } finally {
    await store.close()
  }
}

type Requests = readonly (readonly Check[])[]

/** An operation on a store and its model, some time after the previous one. */
type Operation =
  | { readonly kind: "take"; readonly afterMs: number; readonly requests: Requests }
  | { readonly kind: "read"; readonly afterMs: number; readonly requests: Requests }
  | { readonly kind: "refund"; readonly afterMs: number; readonly nth: number; readonly units: number }
  | { readonly kind: "reset"; readonly afterMs: number; readonly key: Check }

/** The partitions and policies that requests may use. */
interface AskedCounters {
  readonly policies: readonly Policy[]
  readonly partitions: readonly string[]
}

const POLICIES: readonly Policy[] = [SLIDING, FIXED, FIRST_HIT, HOURLY].flatMap((policy) => [
  policy,
  { ...policy, limit: 6 },
])
const SEVERAL: AskedCounters = { policies: POLICIES, partitions: ["alice", "bob", ""] }
const ONE_CLIENT: AskedCounters = {
  policies: POLICIES.flatMap((policy) => [policy, { ...policy, countRejected: true }]),
  partitions: ["alice"],
}
/** Permits under several limits. Negative refunds of permits are renewals. */
const PERMITS_ONLY: readonly Policy[] = [
  PERMITS,
  { ...PERMITS, limit: 6 },
  { ...PERMITS, limit: 4, extra: 3 },
]
/** Each request is for one client, so that a cluster stores all counters of the request on one node. */
const PERMIT_TRACES: readonly {
  readonly what: string
  readonly counters: AskedCounters
  readonly seed: number
}[] = [
  {
    what: "of permits alone",
    counters: { policies: PERMITS_ONLY, partitions: ["alice"] },
    seed: 6_005,
  },
  {
    what: "of permits beside rates",
    counters: { policies: [SLIDING, HOURLY, ...PERMITS_ONLY], partitions: ["alice"] },
    seed: 6_006,
  },
]

/** Generates operations with at most `mostRequests` requests per call. */
function operations(
  mostRequests = 3,
  { policies, partitions }: AskedCounters = SEVERAL,
): fc.Arbitrary<Operation> {
  const checks = fc.record({
    policy: fc.constantFrom(...policies),
    partition: fc.constantFrom(...partitions),
    cost: fc.oneof(fc.nat(4), fc.nat(16)),
    shadow: fc.oneof(
      { weight: 4, arbitrary: fc.constant(false) },
      { weight: 1, arbitrary: fc.constant(true) },
    ),
  })
  const requests = fc.array(fc.array(checks, { minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: mostRequests,
  })
  const afterMs = fc.oneof(fc.constantFrom(0, 0, 0, 1, MINUTE, HOUR), fc.nat(MINUTE), fc.nat(3 * MINUTE))
  return fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("take" as const), afterMs, requests }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("read" as const), afterMs, requests }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("refund" as const),
        afterMs,
        nth: fc.nat(1_000),
        units: fc.integer({ min: -3, max: 6 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("reset" as const), afterMs, key: checks }) },
  )
}

/** Runs a trace on the store and on the model, and compares every result. */
async function agree(
  store: Store,
  clock: ManualClock,
  story: readonly Operation[],
  compare: Compare,
): Promise<void> {
  const model = new StoreModel()
  const taken: { check: Check; after: CounterState }[] = []
  for (const operation of story) {
    clock.advance(operation.afterMs)
    const nowMs = clock.now()
    if (operation.kind === "take") {
      const answers: StoreResult[] = []
      for (const checks of operation.requests) answers.push(await store.take(checks))
      compare(
        answers,
        operation.requests.map((checks) => model.take(checks, nowMs)),
      )
      for (const [at, { checks }] of answers.entries()) {
        for (const [nth, counted] of checks.entries()) {
          const asked = operation.requests[at]?.[nth] as Check
          if (counted !== undefined && counted.taken > 0) taken.push({ check: asked, after: counted.state })
        }
      }
    } else if (operation.kind === "read") {
      const checks = operation.requests.flat()
      expect(await store.read(checks)).toEqual(model.read(checks, nowMs))
    } else if (operation.kind === "reset") {
      await store.reset([operation.key])
      model.reset([operation.key])
    } else {
      const { check: asked, after } = taken[operation.nth % taken.length] ?? {}
      if (asked === undefined || after === undefined) continue
      const refunds = [{ policy: asked.policy, partition: asked.partition, units: operation.units, after }]
      await store.refund(refunds)
      model.refund(refunds, nowMs)
    }
  }
}
