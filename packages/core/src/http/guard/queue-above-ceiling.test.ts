import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Throttle } from "../../rules/throttle.ts"
import { createGuard } from "./create-guard.ts"
import type { GuardOptions } from "./guard.ts"

const SECOND = 1_000
const QUIET = { warn() {}, error() {} }
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const TWO = { limit: 2, window: SECOND, algorithm: "fixed-window" } as const
const LEAKY = { limit: 10, window: SECOND, algorithm: "leaky-bucket", burst: 5 } as const

/** Records when each request is admitted, marked or refused, in milliseconds from the start. */
async function recording(options: object) {
  const clock = manualClock()
  const guard = createGuard({ clock, logger: QUIET, ...options } as GuardOptions<object>)
  // In the event loop turn of its creation, a guard assumes that a request handler created it.
  await nextTurn()
  const startMs = clock.now()
  const entries: string[] = []
  const write = (name: string, { allowed, overLimit }: Decision) => {
    const verdict = allowed ? (overLimit ? "over" : "in") : "refused"
    entries.push(`${clock.now() - startMs} ${name} ${verdict}`)
  }
  const ask = (...names: string[]) => {
    for (const name of names) {
      const outcome = guard.check(ALICE, {})
      if (outcome instanceof Promise) void outcome.then((one) => one && write(name, one.decision))
      else if (outcome !== undefined) write(name, outcome.decision)
    }
  }
  const pass = async (ms: number, stepMs = 100) => {
    await nextTurn()
    for (let passed = 0; passed < ms; passed += stepMs) {
      clock.advance(stepMs)
      await nextTurn()
    }
  }
  return { guard, entries, ask, pass }
}

describe("a soft rule with a queue", () => {
  const soft = (queue: object | undefined, more: object = {}) => ({
    ...TWO,
    throttle: { kind: "soft", percent: 50, queue },
    ...more,
  })

  it("admits its percentage above the limit immediately, and queues later requests in order", async () => {
    const { entries, ask, pass } = await recording(soft({ maxWaiting: 4, maxWaitMs: 1_500 }))
    ask("a", "b", "c", "d", "e", "f", "g")
    expect(entries).toEqual(["0 a in", "0 b in", "0 c over"])
    await pass(2 * SECOND)
    // Requests that have waited count like other requests. The fourth request no longer fits into the next window.
    expect(entries.slice(3)).toEqual(["1000 d in", "1000 e in", "1000 f over", "1000 g refused"])
  })

  it("holds 100 requests for at most 10 seconds by default", async () => {
    const { entries, ask, pass } = await recording(soft({}, { window: 10 * SECOND }))
    ask("a", "b", "c", ...Array<string>(100).fill("w"), "last")
    expect(entries.slice(3)).toEqual(["0 last refused"])
    await pass(10 * SECOND, SECOND)
    expect(entries.slice(4, 7)).toEqual(["10000 w in", "10000 w in", "10000 w over"])
    expect(entries.slice(7)).toEqual(Array(97).fill("10000 w refused"))
  })

  it("refuses immediately without a queue or in decide(), and never in shadow mode", async () => {
    const plain = await recording(soft(undefined))
    plain.ask("a", "b", "c", "d")
    expect(plain.entries.slice(3)).toEqual(["0 d refused"])
    const shadow = await recording(soft({}, { shadow: true }))
    shadow.ask("a", "b", "c", "d")
    expect(shadow.entries).toHaveLength(4)
    const decided = await recording(soft({}))
    decided.ask("a", "b", "c")
    expect(await decided.guard.limiter.decide(ALICE)).toMatchObject({ allowed: false, refusal: "quota" })
  })
})

describe("an elastic rule with a queue", () => {
  /** Creates a rule whose spare capacity the test controls. */
  async function elastic(queue: object, rule: object = {}) {
    const capacity = { isSpare: true }
    const throttle: Throttle = { kind: "elastic", ceiling: 4, signal: () => capacity.isSpare, queue }
    return { capacity, ...(await recording({ ...TWO, window: 3_600 * SECOND, throttle, ...rule })) }
  }

  it("holds requests until a second after spare capacity returns, at the latest", async () => {
    const { capacity, entries, ask, pass } = await elastic({ maxWaiting: 3 })
    capacity.isSpare = false
    ask("a", "b", "c", "d", "e", "f")
    expect(entries).toEqual(["0 a in", "0 b in", "0 f refused"])
    await pass(2_500)
    expect(entries).toHaveLength(3)
    capacity.isSpare = true
    await pass(500)
    // The last request is refused, because the ceiling of four is reached and the window lasts for nearly another
    // hour.
    expect(entries.slice(3)).toEqual(["3000 c over", "3000 d over", "3000 e refused"])
  })

  it("holds requests beside a rule that refuses", async () => {
    const { entries, ask, pass } = await recording({
      rules: [
        { ...TWO, name: "held", field: "ip", throttle: { kind: "soft", percent: 50, queue: {} } },
        { ...TWO, name: "refuses", field: "ip", limit: 4, window: 60 * SECOND },
      ],
    })
    ask("a", "b", "c", "d")
    await pass(SECOND)
    ask("e")
    expect(entries).toEqual(["0 a in", "0 b in", "0 c over", "1000 d in", "1000 e refused"])
  })
})

describe("a leaky bucket with a soft throttle", () => {
  it("with a queue delays each request until its turn, and refuses requests that do not fit", async () => {
    const { entries, ask, pass } = await recording({
      ...LEAKY,
      throttle: { kind: "soft", percent: 20, queue: {} },
    })
    ask("a", "b", "c", "d", "e", "f", "g", "h")
    expect(entries).toEqual(["0 a in", "0 h refused"])
    await pass(SECOND)
    expect(entries.slice(2).map((entry) => entry.slice(0, 5))).toEqual([
      ...["100 b", "200 c", "300 d", "400 e", "500 f", "600 g"],
    ])
  })

  it("with maxWaiting also queues requests in front of the bucket", async () => {
    const { entries, ask, pass } = await recording({
      ...LEAKY,
      throttle: { kind: "soft", percent: 20, queue: { maxWaiting: 1 } },
    })
    ask("a", "b", "c", "d", "e", "f", "g", "h", "i")
    expect(entries).toEqual(["0 a in", "0 i refused"])
    await pass(SECOND)
    expect(entries.at(-1)).toMatch(/^700 h/)
  })

  it("without a queue delays no request", async () => {
    const { entries, ask } = await recording({ ...LEAKY, throttle: { kind: "soft", percent: 20 } })
    ask("a", "b", "c")
    expect(entries).toEqual(["0 a in", "0 b in", "0 c in"])
  })
})
