import fc from "fast-check"
import { expect, it, vi } from "vitest"
import { PaceError, paced } from "./index.ts"
import { fakeClock } from "./testing/fake-clock.ts"

// The guarantees of a paced fetch, whatever a server responds, in any order: no call leaves before Retry-After, the
// line stays within its bound, no call waits too long, each call ends, and no timer or listener remains.

const MAX_WAITING = 4
const MAX_WAIT_MS = 5_000

interface GivenResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** True if the server never sends the body. */
  readonly hasStalled?: boolean
}

const seconds = fc.oneof(fc.integer({ min: 0, max: 8 }), fc.constantFrom(60, 2_678_400, 99_999_999_999))
const fraction = fc.constantFrom("", ".0", `.${"0".repeat(30)}`, ".30000000000000004")
const left = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.constantFrom(1_000_000, 999_999_999_999_999))
const fields = fc.oneof(
  fc
    .tuple(left, seconds)
    .map(([r, t]) => ({ ratelimit: `"a";r=${r};t=${t}`, "ratelimit-policy": '"a";q=10;w=5' })),
  fc.tuple(left, seconds).map(([r, t]) => ({ "x-ratelimit-remaining": `${r}`, "x-ratelimit-reset": `${t}` })),
  fc.constantFrom({}, { ratelimit: '"a";r=-1' }, { ratelimit: "((" }, { "x-ratelimit-remaining": "many" }),
  fc.constantFrom({ "ratelimit-remaining": "0" }, { ratelimit: '"a";r=1e300;t=1e999' }, { date: "12:30" }),
  fc.tuple(left, seconds).map(([r, t]) => ({
    "ratelimit-remaining": `${r}.5, ${r}`,
    "ratelimit-reset": `${t}.${"3".repeat(20)}`,
  })),
)
const advice = fc.oneof(
  seconds.map((afterSeconds) => ({ kind: "fixed", afterSeconds })),
  seconds.map((initialDelaySeconds) => ({
    ...{ kind: "exponential-backoff", initialDelaySeconds, multiplier: 2 },
    ...{ maxDelaySeconds: 60, jitter: 0.5 },
  })),
  fc.constantFrom(null, { kind: 7 }, { kind: "fixed", afterSeconds: "no" }),
)
const answer: fc.Arbitrary<GivenResponse | Error> = fc.oneof(
  { weight: 4, arbitrary: fields.map((headers) => ({ status: 200, headers })) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom(429, 503), fc.option(seconds), fraction, fields, advice, fc.boolean())
      .map(([status, wait, digits, headers, retry, hasStalled]) => ({
        status,
        headers: {
          ...headers,
          ...(wait !== null && { "retry-after": `${wait}${digits}` }),
          "content-type": "application/problem+json",
        },
        body: JSON.stringify({ detail: "slow down", retry }),
        hasStalled,
      })),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom("ECONNREFUSED", "ECONNRESET")
      .map((code) => Object.assign(new Error(code), { code })),
  },
)
const nth = fc.nat({ max: 20 })
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("call" as const), method: fc.constantFrom("GET", "POST") }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("answer" as const), nth, answer }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("abort" as const), nth }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
  },
)

interface Made {
  readonly abort: AbortController
  /** The total time that the call has waited, and the start of its current wait. */
  waitedMs: number
  sinceMs: number | undefined
  outcome?: unknown
}

it("the paced fetch stays within the limit of the server, for any calls and responses", async () => {
  const { timers } = fakeClock()
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 60 }),
      fc.boolean(),
      fc.constantFrom(0, 700),
      async (steps, hasLimit, backoffMs) => {
        const calls: Made[] = []
        const flights: { readonly made: Made; readonly settle: (given: GivenResponse | Error) => void }[] = []
        const sentAtMs: number[] = []
        let notBeforeMs = 0
        const settled = new Set<Made>()
        const waitOf = ({ waitedMs, sinceMs = performance.now() }: Made): number =>
          waitedMs + performance.now() - sinceMs

        const api = paced(
          (input) =>
            new Promise((resolve, reject) => {
              const nowMs = performance.now()
              expect(nowMs).toBeGreaterThanOrEqual(notBeforeMs)
              sentAtMs.push(nowMs)
              const made = calls[Number(new URL(String(input)).searchParams.get("n"))] as Made
              made.waitedMs = waitOf(made)
              made.sinceMs = undefined
              made.abort.signal.addEventListener("abort", () => reject(made.abort.signal.reason))
              flights.push({
                made,
                settle(given) {
                  if (given instanceof Error) return reject(given)
                  const body = given.hasStalled ? new ReadableStream() : (given.body ?? null)
                  resolve(new Response(body, { status: given.status, headers: { ...given.headers } }))
                },
              })
            }),
          {
            ...{ maxWaiting: MAX_WAITING, maxWaitMs: MAX_WAIT_MS, retries: 2, key: () => "all", backoffMs },
            limit: hasLimit ? { limit: 3, window: "2 seconds" } : undefined,
          },
        )

        const answerFlight = (index: number, given: GivenResponse | Error): void => {
          const [flight] = flights.splice(index, 1)
          flight?.settle(given)
          if (flight !== undefined) flight.made.sinceMs = performance.now()
          if (given instanceof Error || flight?.made.abort.signal.aborted) return
          const wait = given.headers["retry-after"]
          // The longest time is a mistake.
          const waitS = Number(wait) > 2_678_401 ? 86_400 : Number(wait)
          if (wait !== undefined && given.status !== 200)
            notBeforeMs = Math.max(notBeforeMs, performance.now() + waitS * 1000)
        }

        for (const each of steps) {
          if (each.do === "call") {
            const made: Made = { abort: new AbortController(), waitedMs: 0, sinceMs: performance.now() }
            calls.push(made)
            const url = `http://localhost/?n=${calls.length - 1}`
            api(url, { method: each.method, signal: made.abort.signal }).then(
              (response) => Object.assign(made, { outcome: response }) && settled.add(made),
              (error) => Object.assign(made, { outcome: error }) && settled.add(made),
            )
          } else if (each.do === "answer") {
            if (flights.length > 0) answerFlight(each.nth % flights.length, each.answer)
          } else if (each.do === "abort")
            calls[each.nth % Math.max(1, calls.length)]?.abort.abort(new Error("aborted"))
          await vi.advanceTimersByTimeAsync(each.do === "wait" ? each.ms : 0)
          for (const { waiting } of api.status()) expect(waiting).toBeLessThanOrEqual(MAX_WAITING)
          for (const made of calls.filter((one) => !settled.has(one)))
            expect(waitOf(made)).toBeLessThanOrEqual(MAX_WAIT_MS)
        }

        // Respond to all calls that are still in flight, until each call has ended.
        for (let rounds = 0; settled.size < calls.length && rounds < 200; rounds++) {
          while (flights.length > 0) answerFlight(0, { status: 200, headers: {} })
          await vi.advanceTimersByTimeAsync(500)
        }
        expect(settled.size).toBe(calls.length)
        for (const { outcome } of calls) {
          const isError = outcome instanceof Error && /^(aborted|ECONN\w+)$/.test(outcome.message)
          expect(outcome instanceof Response || outcome instanceof PaceError || isError).toBe(true)
        }
        if (hasLimit)
          sentAtMs.forEach((atMs, index) => {
            const fourth = sentAtMs[index + 3]
            if (fourth !== undefined) expect(fourth - atMs).toBeGreaterThanOrEqual(2_000)
          })
        expect(api.status().map(({ waiting, inFlight }) => waiting + inFlight)).toEqual(
          calls.length > 0 ? [0] : [],
        )
        // The timer for reading a body may remain for a second.
        await vi.advanceTimersByTimeAsync(1_000)
        expect(timers()).toBe(0)
        api.close()
      },
    ),
    { numRuns: Number(process.env.RUNS ?? 300) },
  )
})
