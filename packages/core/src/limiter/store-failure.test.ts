import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { CounterState } from "../algorithms/algorithm.ts"
import type { Clock } from "../ground/clock.ts"
import { StoreUnavailableError } from "../ground/errors.ts"
import { manualClock } from "../ground/manual-clock.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import type { OnStoreFailure } from "../ground/policy.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Rule } from "../rules/rule.ts"
import { type MemoryStore, memoryStore } from "../stores/memory/memory-store.ts"
import type { Check, Counted, Store, StoreResult } from "../stores/store.ts"
import { createLimiter } from "./create-limiter.ts"
import type { Limiter } from "./interface/limiter.ts"
import type { LimiterOptions } from "./options/options.ts"

type Take = (checks: readonly Check[]) => MaybePromise<StoreResult>

/** A memory store whose connection can be cut: while `fault` is set, `fault` responds instead. */
class FragileStore implements Store {
  readonly inner: MemoryStore
  fault: Take | undefined
  status = { openBreakers: 0 }
  takes = 0

  constructor(clock: Clock) {
    this.inner = memoryStore({ clock })
  }
  take(checks: readonly Check[]) {
    this.takes++
    return this.fault === undefined ? this.inner.take(checks) : this.fault(checks)
  }
  read(checks: readonly Check[]) {
    if (this.fault === undefined) return this.inner.read(checks)
    // The limiter must also survive a result of the wrong shape.
    return this.fault(checks) as never
  }
  refund(refunds: Parameters<Store["refund"]>[0]) {
    if (this.fault !== undefined) throw new Error("down")
    this.inner.refund(refunds)
  }
  reset(keys: Parameters<Store["reset"]>[0]) {
    this.inner.reset(keys)
  }
  close() {
    this.inner.close()
  }
}

/** The other methods of a store. */
const silent = { refund() {}, reset() {}, close() {} }
const QUIET = { warn() {}, error() {} }
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const down: Take = () => {
  throw new Error("down")
}
const hung: Take = () => new Promise(() => undefined)

function setUp(options: LimiterOptions<RequestFacts>) {
  const clock = manualClock()
  const store = new FragileStore(clock)
  const limiter = createLimiter({ store, clock, logger: QUIET, storeTimeoutMs: 5, ...options })
  const events: string[] = []
  const errors: StoreUnavailableError[] = []
  limiter.on("degraded", (error) => {
    events.push("degraded")
    errors.push(error)
  })
  limiter.on("recovered", () => events.push("recovered"))
  const verdicts = async (count: number) => {
    const all: string[] = []
    for (let i = 0; i < count; i++) {
      const { allowed, degraded, refusal } = await limiter.decide(ALICE)
      all.push(`${allowed ? "admit" : refusal}${degraded ? " degraded" : ""}`)
    }
    return all
  }
  return { clock, store, limiter, events, errors, verdicts }
}

/** Records the error of each store failure that a limiter emits. */
function listen(limiter: Limiter<RequestFacts>): readonly StoreUnavailableError[] {
  const errors: StoreUnavailableError[] = []
  limiter.on("store-error", (error) => void errors.push(error))
  return errors
}

const rule = (name: string, limit: number, onStoreFailure?: OnStoreFailure): Rule => ({
  name,
  field: "service",
  limit,
  window: "1m",
  ...(onStoreFailure === undefined ? {} : { onStoreFailure }),
})

describe("a store that fails", () => {
  it.each<[string, Take, string]>([
    ["throws", down, "The store failed: down"],
    ["rejects", () => Promise.reject(new TypeError("reset")), "The store failed: reset"],
    ["rejects with no error", () => Promise.reject("gone"), "The store failed: gone"],
    ["rejects with nothing", () => Promise.reject(undefined), "The store failed: undefined"],
    [
      "rejects with an unprintable object",
      () => Promise.reject(Object.create(null)),
      "The store failed: an unprintable object",
    ],
    ["reports that it is unavailable", () => Promise.reject(new StoreUnavailableError("no node")), "no node"],
    ["never responds", hung, "The store did not respond within 5 ms."],
    [
      "answers with a thenable that throws",
      () => new Proxy({}, { get: () => down }) as Promise<StoreResult>,
      "The store failed: down",
    ],
  ])(
    "that %s leads to a degraded decision, which a limiter in this process makes",
    async (_how, fault, message) => {
      const { store, limiter, verdicts, errors } = setUp({ limit: 2, window: "1m" })
      store.fault = fault
      expect(await verdicts(3)).toEqual(["admit degraded", "admit degraded", "quota degraded"])
      expect((await limiter.peek(ALICE)).degraded).toBe(true)
      expect(errors.map((error) => error.message)).toEqual([message])
      expect(errors[0]).toBeInstanceOf(StoreUnavailableError)
    },
  )

  const stateFrom = (startMs: number, current: number): CounterState => ({ startMs, current, previous: 0 })
  /** Returns a test case: a result whose single check has been changed. */
  const spoilt = (
    what: string,
    change: (counted: Counted, nowMs: number) => unknown,
  ): [string, (answer: StoreResult) => unknown] => [
    what,
    (answer) => ({ ...answer, checks: [change(answer.checks[0] as Counted, answer.nowMs)] }),
  ]
  const sound = (checks: readonly Check[], startMs: number): StoreResult => ({
    nowMs: startMs,
    granted: true,
    checks: checks.map(({ cost }) => ({ state: stateFrom(startMs, cost), taken: cost })),
  })

  it.each<[string, (answer: StoreResult) => unknown]>([
    ["nothing", () => undefined],
    ["null", () => null],
    ["a number", () => 5],
    ["a string", () => "granted"],
    ["a list", () => []],
    ["no time", ({ granted, checks }) => ({ granted, checks })],
    ["time that is not a number", (answer) => ({ ...answer, nowMs: "0" })],
    ["time with a fraction", (answer) => ({ ...answer, nowMs: answer.nowMs + 0.5 })],
    ["time before the epoch", (answer) => ({ ...answer, nowMs: -1 })],
    ["a verdict that is not a boolean", (answer) => ({ ...answer, granted: 1 })],
    ["no checks", ({ nowMs, granted }) => ({ nowMs, granted })],
    ["too few checks", (answer) => ({ ...answer, checks: [] })],
    ["too many checks", (answer) => ({ ...answer, checks: [...answer.checks, ...answer.checks] })],
    ["checks that are not a list", (answer) => ({ ...answer, checks: { length: 1, 0: answer.checks[0] } })],
    ["a grant for a counter that was not read", (answer) => ({ ...answer, checks: [undefined] })],
    ["null for a check", (answer) => ({ ...answer, checks: [null] })],
    ["no state", (answer) => ({ ...answer, checks: [{ taken: 1 }] })],
    ["null for a state", (answer) => ({ ...answer, checks: [{ state: null, taken: 1 }] })],
    ...[undefined, null, -1, 0.5, Number.NaN, "1", 2 ** 53].flatMap((value) => [
      spoilt(`taken ${String(value)}`, (one) => ({ ...one, taken: value })),
      ...(["previous", "current", "startMs"] as const).map((member) =>
        spoilt(`${member} ${String(value)}`, (one) => ({ ...one, state: { ...one.state, [member]: value } })),
      ),
    ]),
    // A 64-bit integer column, as some database clients read it.
    spoilt("startMs 1n", ({ state, taken }) => ({ state: { ...state, startMs: 1n }, taken })),
    // The last entry of a log counts until exactly a window has passed.
    spoilt("a window that has passed", ({ state, taken }, nowMs) => ({
      state: { ...state, startMs: nowMs - 60_001 },
      taken,
    })),
    spoilt("a window far ahead", ({ state, taken }, nowMs) => ({
      state: { ...state, startMs: nowMs + 60_001 },
      taken,
    })),
    spoilt("a grant that took nothing", ({ state }) => ({ state: { ...state, current: 0 }, taken: 0 })),
    spoilt("a grant that took fewer units than requested", ({ state, taken }) => ({
      state,
      taken: taken - 1,
    })),
    [
      "a refusal of a request that fits",
      (answer) => ({ ...answer, granted: false, checks: [{ state: stateFrom(answer.nowMs, 0), taken: 0 }] }),
    ],
  ])("that responds with %s is treated as failed", async (_what, spoil) => {
    const { store, limiter, errors } = setUp({ limit: 2, window: "1m" })
    const answer: Take = (checks) => spoil(sound(checks, manualClock().now())) as StoreResult
    store.fault = answer
    expect(await limiter.decide(ALICE, { cost: 2 })).toMatchObject({ allowed: true, degraded: true, cost: 2 })
    store.fault = async (checks) => answer(checks)
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: false, degraded: true })
    expect(errors.map(({ message }) => message)).toEqual([
      "The store returned an invalid result. Test the store with @sluice/contracts.",
    ])
  })

  // A database column that is null or truncated. With "00", a part has no digits, so parsing would never end.
  it.each([null, 5, [], "0", "00", ":1", "x"])(
    "that responds with the invalid parts %j is treated as failed",
    async (parts) => {
      for (const algorithm of ["sliding-window-strict", "sliding-log"] as const) {
        const { store, limiter } = setUp({ limit: 2, window: "1m", algorithm })
        store.fault = () => {
          const nowMs = manualClock().now()
          const state = { startMs: nowMs, current: 0, previous: 2, parts } as CounterState
          return { nowMs, granted: false, checks: [{ state, taken: 0 }] }
        }
        expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, degraded: true })
      }
    },
  )

  const nonsense = () => ({ nowMs: 0, granted: true, checks: [{ taken: 1 }] }) as unknown as StoreResult
  it.each<[string, (store: MemoryStore) => Store]>([
    ["has been overwritten", (store) => Object.assign(store, { take: nonsense })],
    [
      "is hidden by the method of a derived object",
      (store) => Object.create(store, { take: { value: nonsense }, subscribe: {} }),
    ],
    ["belongs to another object", ({ take, read }) => ({ ...silent, take, read })],
    [
      "is restored by its replacement before the replacement answers",
      (store) => {
        const { take } = store
        store.take = () => {
          store.take = take
          return nonsense()
        }
        return store
      },
    ],
    [
      "is restored before its asynchronous replacement answers",
      (store) => {
        const { take } = store
        store.take = () =>
          nextTurn().then(() => {
            store.take = take
            return nonsense()
          }) as unknown as StoreResult
        return store
      },
    ],
  ])("that is a memory store whose take %s is treated as failed, too", async (_how, spoil) => {
    const limiter = createLimiter({ limit: 2, window: "1m", logger: QUIET, store: spoil(memoryStore()) })
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, degraded: true, cost: 1 })
  })

  it("that is a memory store is treated as failed if its peek is overwritten later", async () => {
    const store = memoryStore()
    const limiter = createLimiter({ limit: 2, window: "1m", logger: QUIET, store })
    expect(await limiter.peek(ALICE)).toMatchObject({ remaining: 2, degraded: false })
    store.read = nonsense as never
    expect(await limiter.peek(ALICE)).toMatchObject({ remaining: 2, degraded: true })
    expect(await limiter.decide(ALICE)).toMatchObject({ remaining: 1, degraded: false })
  })

  it("is trusted if its result is valid, immediately or later", async () => {
    const { store, limiter, errors } = setUp({ limit: 2, window: "1m" })
    store.fault = (checks) => sound(checks, manualClock().now())
    expect(await limiter.decide(ALICE, { cost: 2 })).toMatchObject({ allowed: true, degraded: false })
    store.fault = async (checks) => sound(checks, manualClock().now() + 60_000)
    expect(await limiter.decide(ALICE, { cost: 2 })).toMatchObject({ allowed: true, degraded: false })
    expect(errors).toEqual([])
  })

  it("may refuse without reading every counter: unread counters neither refuse nor are reported", async () => {
    const { store, limiter, errors } = setUp({ rules: [rule("full", 1), rule("unseen", 9)] })
    store.fault = () => {
      const nowMs = manualClock().now()
      return { nowMs, granted: false, checks: [{ state: stateFrom(nowMs, 1), taken: 0 }, undefined] }
    }
    const { checks, ...decision } = await limiter.decide(ALICE)
    expect(decision).toMatchObject({ allowed: false, policy: "full", refusal: "quota", degraded: false })
    expect(checks.map(({ policy, allowed, counts }) => [policy, allowed, counts?.current])).toEqual([
      ["full", false, 1],
      ["unseen", true, undefined],
    ])
    expect(errors).toEqual([])
  })
})

describe("a decision while the store is unavailable", () => {
  it.each<[string, LimiterOptions<RequestFacts>, string[]]>([
    ["local by default", { limit: 1, window: "1m" }, ["admit degraded", "quota degraded"]],
    [
      "local if the limiter is set to local",
      { limit: 1, window: "1m", onStoreFailure: "local" },
      ["admit degraded", "quota degraded"],
    ],
    [
      "admitted if the limiter is set to allow",
      { limit: 1, window: "1m", onStoreFailure: "allow" },
      ["admit degraded", "admit degraded"],
    ],
    [
      "refused if the limiter is set to deny",
      { limit: 1, window: "1m", onStoreFailure: "deny" },
      ["store-failure degraded", "store-failure degraded"],
    ],
    [
      "set by the rule, even if the limiter is set differently",
      { rules: [rule("a", 1, "allow")], onStoreFailure: "deny" },
      ["admit degraded", "admit degraded"],
    ],
    [
      "set by the limiter for a rule without a setting",
      { rules: [rule("a", 1, "allow"), rule("b", 9)], onStoreFailure: "deny" },
      ["store-failure degraded", "store-failure degraded"],
    ],
    [
      "refused if any rule is set to deny",
      { rules: [rule("a", 9, "allow"), rule("b", 9, "local"), rule("c", 9, "deny")] },
      ["store-failure degraded", "store-failure degraded"],
    ],
    [
      "refused by a local rule beside one that allows",
      { rules: [rule("a", 9, "allow"), rule("b", 1, "local")] },
      ["admit degraded", "quota degraded"],
    ],
    [
      "not refused by a shadow rule that is set to deny, and counted by the others",
      { rules: [{ ...rule("a", 1, "deny"), shadow: true }, rule("b", 1, "local")] },
      ["admit degraded", "quota degraded"],
    ],
  ])("is %s", async (_what, options, expected) => {
    const { store, verdicts } = setUp(options)
    store.fault = down
    expect(await verdicts(2)).toEqual(expected)
  })

  it('contains a wait of a second and the rules if onStoreFailure "deny" refuses the client', async () => {
    const { store, limiter } = setUp({ rules: [rule("a", 9, "deny"), rule("b", 9, "local")] })
    store.fault = down
    const decision = await limiter.decide(ALICE)
    expect(decision).toMatchObject({ policy: "a", retryAfterMs: 1_000, remaining: 0, cost: 0 })
    expect(decision.checks.map(({ policy }) => policy)).toEqual(["a"])
  })

  it("contains no quota if nothing was counted", async () => {
    const { store, limiter } = setUp({ rules: [rule("a", 9, "allow")] })
    store.fault = down
    const decision = await limiter.decide(ALICE)
    expect(decision).toMatchObject({ allowed: true, remaining: 0, cost: 0 })
    expect(decision.checks[0]).not.toHaveProperty("counts")
  })

  it("still refuses requests that can be refused without the store", async () => {
    const { store, limiter, errors } = setUp({
      limit: 5,
      window: "1m",
      deny: ["192.0.2.1"],
      onStoreFailure: "allow",
    })
    store.fault = down
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: false, refusal: "denied", degraded: false })
    expect(errors).toEqual([])
  })

  it.each([
    [1, 7, 7],
    [2, 7, 3],
    [3, 7, 2],
    [100, 7, 1],
  ])(
    "shares the limit among %i instances, so with a limit of %i each admits %i",
    async (instances, limit, admitted) => {
      const { store, verdicts } = setUp({ limit, window: "1m", instances })
      store.fault = down
      const all = await verdicts(limit + 1)
      expect(all.filter((verdict) => verdict === "admit degraded")).toHaveLength(admitted)
    },
  )

  it("never refuses a request forever, because each share fits at least one request", async () => {
    const { store, limiter } = setUp({ limit: 10, window: "1m", instances: 5 })
    store.fault = down
    expect(await limiter.decide(ALICE, { cost: 10 })).toMatchObject({
      allowed: true,
      limit: 10,
      remaining: 0,
    })
    expect(await limiter.decide(ALICE, { cost: 10 })).toMatchObject({ allowed: false, refusal: "quota" })
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: false, limit: 10, remaining: 0 })
  })

  it("uses counters that are separate from the shared ones", async () => {
    const { store, limiter } = setUp({ limit: 5, window: "1m" })
    await limiter.decide(ALICE, { cost: 4 })
    store.fault = down
    expect(await limiter.decide(ALICE, { cost: 5 })).toMatchObject({ allowed: true, remaining: 0 })
    store.fault = undefined
    expect(await limiter.peek(ALICE)).toMatchObject({ remaining: 1, degraded: false })
    store.fault = down
    expect(await limiter.peek(ALICE)).toMatchObject({ remaining: 0, degraded: true })
  })

  it("is refunded to the local counters, once, even if the store is back", async () => {
    const { store, limiter } = setUp({ limit: 5, window: "1m" })
    store.fault = down
    const decision = await limiter.decide(ALICE, { cost: 3 })
    expect(decision.cost).toBe(3)
    await limiter.refund(decision)
    await limiter.refund(decision)
    expect((await limiter.peek(ALICE)).remaining).toBe(5)
    const later = await limiter.decide(ALICE, { cost: 3 })
    store.fault = undefined
    await limiter.decide(ALICE, { cost: 4 })
    await limiter.refund(later)
    expect((await limiter.peek(ALICE)).remaining).toBe(1)
    store.fault = down
    expect((await limiter.peek(ALICE)).remaining).toBe(5)
  })

  it("contains the shadow rules that refuse without counting, as with a store", async () => {
    const { store, limiter } = setUp({
      rules: [
        { ...rule("listed", 7), cost: 2, field: "ip", deny: ["192.0.2.1"], shadow: true },
        rule("real", 5),
      ],
    })
    for (const fault of [undefined, down]) {
      store.fault = fault
      const { checks, ...decision } = await limiter.decide(ALICE)
      const degraded = fault !== undefined
      expect(decision).toMatchObject({ allowed: true, policy: "real", shadowed: ["listed"], degraded })
      expect(checks.map(({ refusal, remaining }) => [refusal, remaining])).toEqual([
        ["denied", 0],
        [undefined, 4],
      ])
    }
  })
})

describe("degraded and recovered", () => {
  it("do not treat the store's cached refusals as a sign of recovery", async () => {
    const { clock, store, events, verdicts } = setUp({ limit: 5, window: "1 minute" })
    store.fault = down
    await verdicts(1)
    clock.advance(60_000)
    store.fault = async (checks) => ({ ...store.inner.take(checks), isRemembered: true })
    expect(await verdicts(1)).toEqual(["admit"])
    expect(events).toEqual(["degraded"])
    store.fault = undefined
    await verdicts(1)
    expect(events).toEqual(["degraded", "recovered"])
  })

  it("are emitted once each, however many decisions there are", async () => {
    const { clock, store, verdicts, events } = setUp({ limit: 100, window: "1m" })
    await verdicts(2)
    expect(events).toEqual([])
    store.fault = down
    await verdicts(3)
    store.fault = hung
    await verdicts(1)
    expect(events).toEqual(["degraded"])
    store.fault = undefined
    // A store that fails only for some keys does not recover whenever it responds for another key.
    clock.advance(9_999)
    await verdicts(3)
    expect(events).toEqual(["degraded"])
    clock.advance(1)
    await verdicts(3)
    expect(events).toEqual(["degraded", "recovered"])
    store.fault = down
    await verdicts(2)
    expect(events).toEqual(["degraded", "recovered", "degraded"])
  })

  it("treat a store as recovered only when none of its servers has an open circuit breaker", async () => {
    const { clock, store, verdicts, events } = setUp({ limit: 100, window: "1m" })
    store.fault = down
    await verdicts(1)
    store.fault = undefined
    store.status.openBreakers = 1
    clock.advance(10_000)
    expect(await verdicts(1)).toEqual(["admit"])
    expect(events).toEqual(["degraded"])
    store.status.openBreakers = 0
    await verdicts(1)
    expect(events).toEqual(["degraded", "recovered"])
  })

  it("are logged with their codes", async () => {
    const said: unknown[] = []
    const logger = {
      warn: ({ code }: { code: string }, text: string) => said.push(["warn", code, text]),
      error: ({ code, err }: { code: string; err?: unknown }, text: string) =>
        said.push(["error", code, text, err]),
    }
    const { clock, store, verdicts } = setUp({ limit: 5, window: "1m", logger })
    store.fault = down
    await verdicts(1)
    store.fault = undefined
    clock.advance(10_000)
    await verdicts(1)
    expect(said).toEqual([
      [
        "error",
        "SLUICE_DEGRADED",
        'The store failed: down.\nUntil the store responds again, each process admits up to 5 of 5 under rule "ip-1m". ' +
          "(@sluice/core/errors/sluice_degraded.md)",
        expect.any(StoreUnavailableError),
      ],
      [
        "warn",
        "SLUICE_RECOVERED",
        "The store responds again. It had failed with: The store failed: down. (@sluice/core/errors/sluice_recovered.md)",
      ],
    ])
  })
})

describe("the log of outages", () => {
  it("names each further cause once, until the store has recovered", async () => {
    const lines: string[] = []
    const add = ({ code }: { code: string }, text: string) =>
      lines.push(`${code} ${text.split(/\n| \(@/)[0]}`)
    const { clock, store, verdicts, events } = setUp({
      limit: 99,
      window: "1m",
      logger: { warn: add, error: add },
    })
    const failWith = async (message: string) => {
      store.fault = () => Promise.reject(new StoreUnavailableError(message))
      await verdicts(2)
    }
    await failWith("Redis did not respond in time.")
    await failWith("Redis did not respond in time. The store keeps trying in the background.")
    await failWith("Redis failed: NOPERM")
    await failWith("Redis did not respond in time.")
    store.fault = undefined
    clock.advance(10_000)
    await verdicts(1)
    await failWith("Redis failed: NOPERM")
    expect(lines).toEqual([
      "SLUICE_DEGRADED Redis did not respond in time.",
      "SLUICE_DEGRADED_FURTHER Redis failed: NOPERM. This is another cause of the outage that began with: Redis did not respond in time.",
      "SLUICE_RECOVERED The store responds again. It had failed with: Redis did not respond in time. Later with: Redis failed: NOPERM.",
      "SLUICE_DEGRADED Redis failed: NOPERM.",
    ])
    expect(events).toEqual(["degraded", "recovered", "degraded"])
  })

  it("names at most four causes of an outage, because each failure of a store may have another message", async () => {
    const lines: string[] = []
    const add = (_: object, text: string) => lines.push(text)
    const { store, verdicts } = setUp({ limit: 99, window: "1m", logger: { warn: add, error: add } })
    let nth = 0
    store.fault = () => Promise.reject(new Error(`request ${nth++} failed`))
    await verdicts(20)
    expect(lines).toHaveLength(4)
  })

  /** Sets up a log that records each code with the second at which it was logged. */
  function setUpLog() {
    const lines: string[] = []
    const add = (code: string, text: string) => {
      const [flapping = ""] = / There were .* minute\./.exec(text) ?? []
      lines.push(`${seconds()} ${code}${flapping}`)
    }
    const logger = {
      warn: ({ code }: { code: string }, text: string) => add(code, text),
      error: ({ code }: { code: string }, text: string) => add(code, text),
    }
    const parts = setUp({ limit: 100_000, window: "1m", logger })
    const startMs = parts.clock.now()
    const seconds = () => (parts.clock.now() - startMs) / 1_000
    const pass = async (fault: Take | undefined, untilS: number) => {
      parts.store.fault = fault
      while (seconds() < untilS) {
        await parts.verdicts(1)
        parts.clock.advance(1_000)
      }
    }
    return { lines, pass, events: parts.events }
  }

  it("has two lines for each outage, with the number of outages in the past minute", async () => {
    const { lines, pass, events } = setUpLog()
    await pass(down, 1)
    await pass(undefined, 20)
    await pass(down, 21)
    await pass(undefined, 70)
    await pass(down, 71)
    await pass(undefined, 140)
    await pass(down, 141)
    await pass(undefined, 155)
    expect(lines).toEqual([
      "0 SLUICE_DEGRADED",
      "10 SLUICE_RECOVERED",
      "20 SLUICE_DEGRADED There were 2 outages in the past minute.",
      "30 SLUICE_RECOVERED There were 2 outages in the past minute.",
      "70 SLUICE_DEGRADED There were 2 outages in the past minute.",
      // At this second, the outage that began at 20 is more than a minute ago.
      "80 SLUICE_RECOVERED",
      "140 SLUICE_DEGRADED",
      "150 SLUICE_RECOVERED",
    ])
    expect(events).toEqual(lines.map((line) => line.split("_")[1]?.split(" ")[0]?.toLowerCase()))
  })

  it.each<[string, LimiterOptions<RequestFacts>, string]>([
    [
      "a share",
      { limit: 100, window: "1m", instances: 4 },
      'each process admits up to 25 of 100 under rule "ip-1m"',
    ],
    [
      "the whole limit",
      { limit: 100, window: "1m" },
      'each process admits up to 100 of 100 under rule "ip-1m"',
    ],
    [
      "a share of a burst",
      { limit: 10, window: "1m", algorithm: "token-bucket", burst: 40, instances: 4 },
      'each process admits up to 10 of 40 under rule "ip-1m"',
    ],
    ["everything", { rules: [rule("a", 5, "allow")] }, 'every request is admitted under rule "a"'],
    ["nothing", { rules: [rule("a", 5, "deny")] }, 'every request is refused under rule "a"'],
    [
      "what several rules do, the strictest first",
      {
        rules: [
          rule("any", 5, "allow"),
          rule("all", 90),
          rule("few", 9),
          { ...rule("trial", 1), shadow: true },
          rule("codes", 5, "deny"),
        ],
        instances: 3,
      },
      'every request is refused under rule "codes", each process admits up to 3 of 9 under rule "few", ' +
        'each process admits up to 30 of 90 under rule "all", and 1 more',
    ],
    ["nothing of shadow rules", { rules: [{ ...rule("a", 5), shadow: true }] }, "no request is refused"],
  ])("describes how requests are decided: %s", async (_what, options, expected) => {
    const { store, limiter, verdicts } = setUp(options)
    const said: string[] = []
    limiter.on("warning", ({ message }) => void said.push(message))
    store.fault = down
    await verdicts(2)
    expect(said).toEqual([`The store failed: down.\nUntil the store responds again, ${expected}.`])
  })

  it("has the lines of each limiter on a store", async () => {
    const { store, clock, verdicts } = setUp({ limit: 5, window: "1m", name: "one" })
    const said: string[] = []
    const logger = { warn: () => {}, error: (_: unknown, text: string) => void said.push(text) }
    const other = createLimiter({ store, clock, logger, name: "other", limit: 5, window: "1m", service: "b" })
    store.fault = down
    await verdicts(1)
    await other.decide(ALICE)
    expect(said).toEqual([expect.stringContaining('under rule "other"')])
  })

  it("has two lines in ten minutes if every second result of the store fails", async () => {
    const { lines, pass, events } = setUpLog()
    for (let second = 0; second < 600; second += 2) {
      await pass(down, second + 1)
      await pass(undefined, second + 2)
    }
    await pass(undefined, 620)
    expect(lines).toEqual(["0 SLUICE_DEGRADED", "608 SLUICE_RECOVERED"])
    expect(events).toEqual(["degraded", "recovered"])
  })
})

it("the limiter times out a slow third-party store, and warns with its latency", async () => {
  const { store, limiter, verdicts } = setUp({ limit: 100_000, window: "1 minute" })
  const messages: string[] = []
  limiter.on("warning", ({ code, message }) => {
    if (code === "SLUICE_STORE_TIMEOUTS") messages.push(message)
  })
  store.fault = (checks) =>
    new Promise((resolve) => {
      setTimeout(() => resolve(store.inner.take(checks)), 30)
    })
  while (messages.length === 0) await verdicts(1)
  await verdicts(20)
  expect(messages).toHaveLength(1)
  const [, takenMs] =
    /within storeTimeoutMs \(5 ms\)\. Its replies take (\d+) ms/.exec(messages[0] ?? "") ?? []
  expect(Number(takenMs), messages[0]).toBeGreaterThanOrEqual(30)
})

describe("store-error", () => {
  const refuse: Take = () => {
    throw new StoreUnavailableError("not asked", { kind: "unavailable" })
  }
  const nonsense: Take = () => [] as never

  it("is emitted each time, unlike degraded, with its kind", async () => {
    const { store, limiter, events, verdicts } = setUp({ limit: 100, window: "1 minute" })
    const errors = listen(limiter)
    for (const fault of [down, down, hung, refuse, nonsense]) {
      store.fault = fault
      await verdicts(1)
    }
    store.fault = undefined
    await verdicts(1)
    expect(errors.map(({ kind }) => kind)).toEqual([
      "error",
      "error",
      "timeout",
      "unavailable",
      "invalid-answer",
    ])
    expect(events).toEqual(["degraded"])
  })

  it("has the error of the store as its cause", async () => {
    const { store, limiter, verdicts } = setUp({ limit: 100, window: "1 minute" })
    const errors = listen(limiter)
    const cause = new Error("ECONNRESET")
    store.fault = () => Promise.reject(cause)
    await verdicts(2)
    expect(errors.map(({ message, cause }) => [message, cause])).toEqual([
      ["The store failed: ECONNRESET", cause],
      ["The store failed: ECONNRESET", cause],
    ])
  })
})

describe("the deadline", () => {
  it("discards a result or a failure that arrives after it", async () => {
    const { clock, store, limiter, events } = setUp({ limit: 5, window: "1m" })
    const failures = listen(limiter)
    let answer: () => void = () => undefined
    let fail: (error: Error) => void = () => undefined
    store.fault = (checks) =>
      new Promise((resolve, reject) => {
        answer = () => resolve(store.inner.take(checks))
        fail = reject
      })
    const late = await limiter.decide(ALICE)
    expect(late).toMatchObject({ degraded: true, remaining: 4 })
    // A result that came in time would show that the store is back.
    clock.advance(1_000)
    answer()
    await nextTurn()
    expect(events).toEqual(["degraded"])
    await limiter.decide(ALICE)
    fail(new Error("late"))
    await nextTurn()
    expect(events).toEqual(["degraded"])
    expect(failures.map(({ kind }) => kind)).toEqual(["timeout", "timeout"])
    expect(late).toMatchObject({ degraded: true, remaining: 4 })
  })
})

describe("a clock that is broken", () => {
  it.each<[string, () => number]>([
    ["throws", () => down([]) as never],
    ["returns NaN", () => Number.NaN],
    ["returns a negative number", () => -1],
    ["returns Infinity", () => Number.POSITIVE_INFINITY],
    ["returns nanoseconds as a bigint", process.hrtime.bigint as () => never],
    ["returns microseconds", () => Date.UTC(2024) * 1_000],
  ])("that %s degrades decisions, which are counted by a working clock", async (_how, now) => {
    const limiter = createLimiter({ limit: 2, window: "1 hour", clock: { now }, logger: QUIET })
    const rows: [boolean, boolean][] = []
    for (let i = 0; i < 3; i++) {
      const { allowed, degraded } = await limiter.decide(ALICE)
      rows.push([allowed, degraded])
    }
    expect(rows).toEqual([
      [true, true],
      [true, true],
      [false, true],
    ])
  })
})
