import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Decision } from "../decision/decision.ts"
import { manualClock } from "../ground/manual-clock.ts"
import { createLimiter } from "../limiter/create-limiter.ts"
import { HEADER_DIALECTS, headerFormats } from "../limiter/options/header-formats.ts"
import { KINDS_OF_RULE } from "../limiter/rule-set/testing/kinds-of-rule.ts"
import type { RateRule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store, StoreReading, StoreResult } from "../stores/store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import type { CounterBackend, KeptCounter } from "../stores/transactional/counter-backend.ts"
import { transactionalStore } from "../stores/transactional/transactional-store.ts"
import { compileHeaders } from "./headers.ts"

const HOUR_MS = 3_600_000
const LIMIT = 5
const RUNS = { seed: 22_002, numRuns: 50 }
const SILENT = { warn: () => undefined, error: () => undefined }

/** Returns the decision of a limiter with one rule and this store, and a peek after it. */
async function ask(members: Partial<RateRule>, store: Store): Promise<readonly Decision[]> {
  const rule = { name: "rule", limit: LIMIT, window: HOUR_MS, field: "service", ...members }
  const limiter = createLimiter<object>({
    service: "a",
    rules: [rule],
    store,
    clock: manualClock(),
    logger: SILENT,
  })
  const asked = [await limiter.decide({}), await limiter.peek({}, { cost: 3 })]
  await limiter.close()
  return asked
}

/** Expects a decision without the store, or a decision whose numbers are all valid in headers. */
function expectSound(decision: Decision): void {
  for (const dialect of HEADER_DIALECTS) {
    const write = compileHeaders(headerFormats(dialect), [
      { name: "rule", limit: LIMIT, windowMs: HOUR_MS, unit: "requests", shadow: false },
    ])
    expect(JSON.stringify(write(decision, () => 1_000))).not.toMatch(/NaN|Infinity|undefined|null|[=:]"?-/)
  }
  for (const { remaining, retryAfterMs, nextUnitAfterMs, resetAfterMs, delayMs } of decision.checks) {
    const numbers = [remaining as number, retryAfterMs, nextUnitAfterMs, resetAfterMs, delayMs]
    for (const number of numbers)
      expect([number, number >= 0 && number <= Number.MAX_SAFE_INTEGER]).toEqual([number, true])
  }
}

const wrong = fc.constantFrom(
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  -1,
  0.5,
  2 ** 53,
  -(2 ** 53),
  "1",
  null,
  undefined,
)
const count = fc.oneof(
  { weight: 8, arbitrary: fc.nat(9) },
  { weight: 1, arbitrary: fc.constantFrom(2 ** 20, 2 ** 45, Number.MAX_SAFE_INTEGER) },
  { weight: 1, arbitrary: wrong },
)
const parts = fc.oneof(
  fc.constantFrom("", "0", "~", "11", "1:", `9${"o".repeat(20)}`, "x".repeat(9), -5, null),
  fc.string({ unit: fc.constantFrom(..."0012o~/"), maxLength: 40 }).map((text) => `1${text}`),
)

/** Returns valid and invalid states of a window, a bucket or a log. */
function states(nowMs: number): fc.Arbitrary<unknown> {
  const aligned = fc.integer({ min: -2, max: 2 }).map((n) => nowMs - (nowMs % HOUR_MS) + n * HOUR_MS)
  const startMs = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.oneof(
        aligned,
        fc.nat(HOUR_MS).map((ms) => nowMs - ms),
      ),
    },
    { weight: 1, arbitrary: fc.oneof(wrong, fc.constant(Number.MAX_SAFE_INTEGER)) },
  )
  const state = fc.record({ startMs, current: count, previous: count })
  return fc.oneof(
    state,
    fc.tuple(state, parts).map(([one, text]) => ({ ...one, parts: text })),
  )
}

describe.each(KINDS_OF_RULE)("a decision under a rule of kind %s", (_name, members) => {
  const nowMs = manualClock().now()

  it("is degraded or has only valid numbers if a third-party store returns invalid results", async () => {
    const answers = fc.record({
      nowMs: fc.oneof({ weight: 9, arbitrary: fc.constant(nowMs) }, { weight: 1, arbitrary: wrong }),
      granted: fc.constantFrom(true, true, false, false, 1, undefined),
      checks: fc.array(fc.record({ state: states(nowMs), taken: fc.constantFrom(0, 1, 1, -1, Number.NaN) }), {
        minLength: 1,
        maxLength: 1,
      }),
    })
    const property = fc.asyncProperty(answers, fc.boolean(), async (answer, isLate) => {
      const give = <Answer>(told: unknown) => (isLate ? Promise.resolve(told) : told) as Answer
      const take = () => give<StoreResult>(answer)
      const read = () => give<StoreReading>({ nowMs: answer.nowMs, counters: answer.checks })
      for (const decision of await ask(members, { ...methodsOf(memoryStore()), take, read })) {
        expectSound(decision)
      }
    })
    await fc.assert(property, RUNS)
  })

  it("is degraded or has only valid numbers if the back end contains invalid counters", async () => {
    const kept = fc.record({
      state: states(nowMs),
      expiresAtMs: fc.constantFrom(nowMs + HOUR_MS, nowMs + 1),
    })
    const property = fc.asyncProperty(kept, async (counter) => {
      const backend: CounterBackend = {
        isShared: false,
        transact: (keys, change) =>
          void change(
            keys.map(() => counter as KeptCounter),
            nowMs,
          ),
      }
      for (const decision of await ask(members, transactionalStore(backend))) expectSound(decision)
    })
    await fc.assert(property, RUNS)
  })
})
