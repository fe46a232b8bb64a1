import { describe, expect, it } from "vitest"
import { LATEST_MS } from "../../ground/clock.ts"
import { ClosedError, InvalidOptionError, StoreUnavailableError } from "../../ground/errors.ts"
import type { Policy } from "../../ground/policy.ts"
import type { Check, StoreResult } from "../store.ts"
import type { ChangeCounters, CounterBackend, KeptCounter } from "./counter-backend.ts"
import { transactionalStore } from "./transactional-store.ts"

const NOW_MS = Date.UTC(2024, 0, 1)
const POLICY: Policy = {
  name: "rule",
  counter: "a:b",
  algorithm: "fixed-window",
  limit: 2,
  windowMs: 60_000,
  align: "epoch",
}
const check = (more: Partial<Check> = {}): Check => ({
  policy: POLICY,
  partition: "c",
  cost: 1,
  shadow: false,
  ...more,
})
const KEPT: KeptCounter = {
  state: { startMs: NOW_MS, current: 2, previous: 0 },
  expiresAtMs: NOW_MS + 60_000,
}

/** Returns a back end that finds `found` under every key, with its calls and their changes. */
function backendWith(found: unknown, nowMs: unknown = NOW_MS) {
  const asked: (readonly string[])[] = []
  const changes: unknown[] = []
  const transact = (keys: readonly string[], change: ChangeCounters): void => {
    asked.push(keys)
    changes.push(
      change(
        keys.map(() => found as KeptCounter),
        nowMs as number,
      ),
    )
  }
  return { transact, asked, changes }
}

describe("a transactional store", () => {
  it("answers with values where its back end does, and with promises where that does", async () => {
    const { transact } = backendWith(undefined)
    expect(transactionalStore({ transact }).take([[check()]])).toMatchObject([{ granted: true }])
    const later = transactionalStore({ transact: async (keys, change) => transact(keys, change) })
    const answers = later.take([[check()]])
    expect(answers).toBeInstanceOf(Promise)
    expect(await answers).toMatchObject([{ granted: true, nowMs: NOW_MS }])
  })

  it("passes on how long the caller waits, so that its back end can end a transaction in time", () => {
    const { transact } = backendWith(undefined)
    const deadlines: (number | undefined)[] = []
    const store = transactionalStore({
      transact(keys, change, withinMs) {
        deadlines.push(withinMs)
        transact(keys, change)
      },
    })
    store.take([[check()]], 50)
    store.peek([[check()]], 60)
    store.refund([{ ...check(), units: 1, after: KEPT.state }], 70)
    store.reset([check()], 80)
    store.take([[check()]])
    expect(deadlines).toEqual([50, 60, 70, 80, undefined])
  })

  it("reads all counters of a call in one transaction: sorted, each once, none by the name of another", () => {
    const backend = backendWith(undefined)
    const other = check({ policy: { ...POLICY, counter: "a" }, partition: "b:c" })
    transactionalStore(backend).take([[check(), other], [check()]])
    expect(backend.asked).toEqual([["1:a:b:c", "3:a:b:c"]])
  })

  it("asks by printable texts alone, whatever a client has written", () => {
    const backend = backendWith(undefined)
    const partitions = [
      "b\0",
      "\ud800",
      "\ud801",
      "é",
      "e\u0301",
      "x".repeat(128),
      "x".repeat(129),
      "x".repeat(9_999),
    ]
    transactionalStore(backend).take([partitions.map((partition) => check({ partition }))])
    const [keys = []] = backend.asked
    expect(keys).toHaveLength(partitions.length)
    expect(keys).toContain(`3:a:b:${"x".repeat(128)}`)
    expect(keys.filter((key) => !/^[\x20-\x7e]{1,200}$/.test(key))).toEqual([])
    // A partition that looks like the hash of another partition gets a different key.
    const [hashed = ""] = keys.filter((key) => key.includes("#"))
    transactionalStore(backend).take([[check({ partition: hashed.slice("3:a:b".length) })]])
    expect(backend.asked[1]).not.toEqual([hashed])
  })

  it("writes what has changed alone, for as long as it counts", () => {
    const backend = backendWith(KEPT)
    const store = transactionalStore(backend)
    store.take([[check()]])
    store.peek([[check()]])
    store.refund([{ policy: POLICY, partition: "c", units: 1, after: KEPT.state }])
    store.reset([check()])
    const key = "3:a:b:c"
    expect(backend.changes).toEqual([
      [],
      [],
      [{ key, counter: { ...KEPT, state: { ...KEPT.state, current: 1 } } }],
      [{ key, counter: undefined }],
    ])
  })

  it("writes nothing anew that is kept for long enough", () => {
    const bucket = check({ policy: { ...POLICY, algorithm: "token-bucket" } })
    const backend = backendWith({ ...KEPT, expiresAtMs: NOW_MS + 60_000 })
    const store = transactionalStore(backend)
    store.peek([[bucket]])
    store.peek([[{ ...bucket, policy: { ...bucket.policy, limit: 1 } }]])
    const [first, second] = backend.changes
    expect(first).toEqual([])
    // With the lower limit, the same units come back half as fast.
    expect(second).toEqual([
      { key: "3:a:b:c", counter: { state: KEPT.state, expiresAtMs: NOW_MS + 120_000 } },
    ])
  })

  it.each([0, LATEST_MS])("takes the time of its back end, %d", (nowMs) => {
    expect(transactionalStore(backendWith(undefined, nowMs)).peek([[check()]])).toMatchObject([{ nowMs }])
  })

  it("deletes nothing that is not there", () => {
    const backend = backendWith(null)
    transactionalStore(backend).reset([check()])
    expect(backend.changes).toEqual([[]])
  })

  it("takes what has expired for nothing", () => {
    const backend = backendWith({ ...KEPT, expiresAtMs: NOW_MS })
    expect(transactionalStore(backend).peek([[check()]])).toMatchObject([{ granted: true }])
  })

  it.each<[string, unknown]>([
    ["a text", "counter"],
    ["an empty object", {}],
    ["no time to expire", { state: KEPT.state }],
    ["no state", { expiresAtMs: KEPT.expiresAtMs }],
    ["a state that is null", { ...KEPT, state: null }],
    ["a fraction", { ...KEPT, state: { ...KEPT.state, current: 1.5 } }],
    ["a negative count", { ...KEPT, state: { ...KEPT.state, current: -1 } }],
    ["a count as a text", { ...KEPT, state: { ...KEPT.state, current: "2" } }],
    ["no start", { ...KEPT, state: { current: 2, previous: 0 } }],
    ["NaN", { ...KEPT, state: { ...KEPT.state, previous: Number.NaN } }],
    ["parts that are no text", { ...KEPT, state: { ...KEPT.state, parts: [1] } }],
    ["parts that are none", { ...KEPT, state: { ...KEPT.state, parts: "x" } }],
  ])("refuses to decide by rubbish: %s", (_what, found) => {
    const backend = backendWith(found)
    const take = () => transactionalStore(backend).take([[check()]])
    expect(take).toThrow(StoreUnavailableError)
    const message =
      'The back end of the store returned invalid data: the value of "3:a:b:c" is not a valid counter.'
    expect(take).toThrow(expect.objectContaining({ message, kind: "invalid-answer" }))
    expect(backend.changes).toEqual([])
  })

  it.each(["1".repeat(40), `3${"~".repeat(400)}`])(
    "writes nothing that rubbish in the parts of a counter has been made more of: %s",
    (parts) => {
      const policy: Policy = { ...POLICY, algorithm: "sliding-log", limit: 9_999 }
      const backend = backendWith({
        ...KEPT,
        state: { startMs: NOW_MS - 100, current: 3, previous: 1, parts },
      })
      const take = () => transactionalStore(backend).take([[check({ policy, cost: 3 })]])
      expect(take).toThrow(expect.objectContaining({ kind: "invalid-answer" }))
      expect(backend.changes).toEqual([])
    },
  )

  it("keeps a bucket that owes more than a year's quota no longer than a full one", () => {
    const windowMs = 2_592_000_000
    const policy: Policy = { ...POLICY, algorithm: "token-bucket", limit: 1, windowMs }
    const state = { startMs: NOW_MS, current: 9_000_000_000_000, previous: 0 }
    const backend = backendWith({ ...KEPT, state })
    const [answer] = transactionalStore(backend).peek([[check({ policy })]]) as readonly StoreResult[]
    expect(answer).toMatchObject({ granted: false, checks: [{ state: { current: 1, previous: 0 } }] })
    const counter = { state, expiresAtMs: NOW_MS + windowMs }
    expect(backend.changes).toEqual([[{ key: "3:a:b:c", counter }]])
  })

  it.each([undefined, Number.NaN, -1, Number.POSITIVE_INFINITY, "1704067200000", LATEST_MS + 1])(
    "refuses to decide by a time that is none: %s",
    (nowMs) => {
      const backend = { ...backendWith(undefined) }
      const transact = (keys: readonly string[], change: ChangeCounters) =>
        void change(
          keys.map(() => undefined),
          nowMs as number,
        )
      const take = () => transactionalStore({ ...backend, transact }).take([[check()]])
      expect(take).toThrow(/returned invalid data: its time is .*, but must be in epoch milliseconds/)
    },
  )

  it("says so when its back end was done before it had asked, at once or later", async () => {
    const message = "finished transact() without calling change()"
    expect(() => transactionalStore({ transact() {} }).take([[check()]])).toThrow(message)
    const later = transactionalStore({ async transact() {} })
    await expect(later.take([[check()]])).rejects.toMatchObject({ kind: "invalid-answer" })
  })

  it("decides by what is there at the last try", () => {
    const store = transactionalStore({
      transact(_keys, change) {
        change([undefined], NOW_MS)
        change([KEPT], NOW_MS)
      },
    })
    expect(store.take([[check()]])).toMatchObject([{ granted: false }])
  })

  it("is shared, unless its back end says that it is not", () => {
    const { transact } = backendWith(undefined)
    expect(transactionalStore({ transact }).isShared).toBe(true)
    expect(transactionalStore({ transact, isShared: false }).isShared).toBe(false)
  })

  it("closes its back end, once, and answers nothing afterwards", async () => {
    let closed = 0
    const backend: CounterBackend = {
      ...backendWith(undefined),
      async close() {
        closed++
      },
    }
    const store = transactionalStore(backend)
    await store.close()
    await store.close()
    expect(closed).toBe(1)
    expect(() => store.take([])).toThrow(new ClosedError("The store has been closed."))
  })

  it.each([undefined, null, 5, {}, { transact: true }])("refuses a back end that is none: %s", (backend) => {
    expect(() => transactionalStore(backend as never)).toThrow(InvalidOptionError)
    const accepted = "an object with transact(keys, change)"
    const problems = [{ path: "", message: "the back end has no method transact()", accepted }]
    expect(() => transactionalStore(backend as never)).toThrow(expect.objectContaining({ problems }))
  })

  it.each(["isShared", "close"])("refuses a back end whose %s is of another type", (path) => {
    const problems = [expect.objectContaining({ path })]
    const create = () => transactionalStore({ ...backendWith(undefined), [path]: 5 } as never)
    expect(create).toThrow(expect.objectContaining({ problems }))
  })
})
