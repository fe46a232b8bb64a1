import { setImmediate as nextTurn } from "node:timers/promises"
import fc from "fast-check"
import { expect, it } from "vitest"
import { ruleCheck } from "../../decision/testing/rule-checks.ts"
import { setUp } from "./testing/room.ts"

/** One request: the counters it needs ("a", "b" or "c"), its cost, and when its wait ends. */
interface Arrival {
  readonly counters: readonly string[]
  readonly cost: number
  readonly maxWaitMs: number
  readonly priority: number
  /** Milliseconds after which the request is aborted; never if undefined. */
  readonly leavesMs: number | undefined
  /** Milliseconds until the next request arrives. */
  readonly pauseMs: number
}

const LIMITS: Readonly<Record<string, number>> = { a: 3, b: 4, c: 5 }
const WINDOW_MS = 100

const arrivals: fc.Arbitrary<readonly Arrival[]> = fc.array(
  fc.record({
    counters: fc.subarray(["a", "b", "c"], { minLength: 1 }),
    cost: fc.integer({ min: 1, max: 3 }),
    maxWaitMs: fc.constantFrom(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0, 50, 150, 250),
    priority: fc.constantFrom(0, 0, 0, 1, -1, 1_000),
    leavesMs: fc.option(fc.integer({ min: 0, max: 300 }), { nil: undefined, freq: 5 }),
    pauseMs: fc.constantFrom(0, 0, 0, 10, 40),
  }),
  { minLength: 5, maxLength: 30 },
)

it.each([
  ["immediately", false],
  ["later", true],
] as const)(
  "requests wait in order, within their maximum wait and the limits, with a store that responds %s",
  async (_how, isSlow) => {
    await fc.assert(
      fc.asyncProperty(arrivals, async (all) => {
        const { room, clock, log, pending, enter, answer } = setUp((_checks, isPeek) => isSlow && !isPeek)
        const startMs = clock.now()
        const pass = async (ms: number) => {
          for (let passed = 0; passed <= ms; passed += 5) {
            for (let quiet = 0; quiet < 3; quiet = pending.length > 0 ? 0 : quiet + 1) {
              while (pending.length > 0) await answer()
              await nextTurn()
            }
            if (passed < ms) clock.advance(5)
          }
        }
        const came: number[] = []
        for (const [i, { counters, cost, maxWaitMs, priority, leavesMs, pauseMs }] of all.entries()) {
          const leaving = new AbortController()
          came.push(clock.now() - startMs)
          const ruleChecks = counters.map((name) =>
            ruleCheck(name, LIMITS[name] as number, cost, { windowMs: WINDOW_MS }),
          )
          enter(`${i}`, ruleChecks, { maxWaitMs, priority, signal: leaving.signal })
          if (leavesMs !== undefined) void clock.wait(leavesMs).then(() => leaving.abort(new Error("left")))
          await pass(pauseMs)
        }
        for (let steps = 0; room.size > 0; steps++) {
          expect(steps, "everybody is served").toBeLessThan(1_000)
          await pass(20)
        }
        await pass(0)
        expect(log).toHaveLength(all.length)
        const admitted = log.flatMap((entry) => {
          const [atMs, name] = entry.split(" ")
          return name?.endsWith(":") ? [] : [{ atMs: Number(atMs), i: Number(name) }]
        })
        const used = new Map<string, number>()
        for (const [at, { atMs, i }] of admitted.entries()) {
          const { counters, cost, maxWaitMs, priority } = all[i] as Arrival
          expect(atMs - (came[i] as number), "nobody waits for longer than it may").toBeLessThanOrEqual(
            maxWaitMs,
          )
          for (const later of admitted.slice(at + 1)) {
            const other = all[later.i] as Arrival
            if (String(other.counters) !== String(counters)) continue
            if (other.priority === priority) {
              expect(later.i, "no request overtakes one with the same counters").toBeGreaterThan(i)
            } else if (other.priority > priority) {
              expect(came[later.i], "a higher priority goes first").toBeGreaterThanOrEqual(atMs)
            }
          }
          for (const name of counters) {
            const window = `${name} ${Math.floor(atMs / WINDOW_MS)}`
            used.set(window, (used.get(window) ?? 0) + cost)
            expect(used.get(window), "no limit is exceeded").toBeLessThanOrEqual(LIMITS[name] as number)
          }
        }
      }),
      { numRuns: 60 },
    )
  },
  120_000,
)
