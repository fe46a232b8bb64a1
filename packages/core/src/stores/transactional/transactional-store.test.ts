import { describe, expect, it } from "vitest"
import { LATEST_MS } from "../../ground/clock.ts"
import { ClosedError, InvalidOptionError, StoreUnavailableError } from "../../ground/errors.ts"
import type { Policy } from "../../ground/policy.ts"
import { peekStore } from "../peek-store.ts"
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

/** Returns a back end that finds `found` under every key, and records its calls and their changes. */
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
  it("returns values if its back end is synchronous, and promises if it is asynchronous", async () => {
    const { transact } = backendWith(undefined)
    expect(transactionalStore({ transact }).take([check()])).toMatchObject({ granted: true })
    const later = transactionalStore({ transact: async (keys, change) => transact(keys, change) })
    const answers = later.take([check()])
    expect(answers).toBeInstanceOf(Promise)
    expect(await answers).toMatchObject({ granted: true, nowMs: NOW_MS })
  })

  it("passes the caller's timeout to its back end, so that a transaction can end in time", () => {
    const { transact } = backendWith(undefined)
    const deadlines: (number | undefined)[] = []
    const store = transactionalStore({
      transact(keys, change, withinMs) {
        deadlines.push(withinMs)
        transact(keys, change)
      },
    })
    store.take([check()], 50)
    peekStore(store, [check()], 60)
    store.refund([{ ...check(), units: 1, after: KEPT.state }], 70)
    store.reset([check()], 80)
    store.take([check()])
    expect(deadlines).toEqual([50, 60, 70, 80, undefined])
  })

  it("reads all counters of a call in one transaction, with keys that are sorted and unique", () => {
    const backend = backendWith(undefined)
    const other = check({ policy: { ...POLICY, counter: "a" }, partition: "b:c" })
    transactionalStore(backend).take([check(), other, check()])
    expect(backend.asked).toEqual([["1:a:b:c", "3:a:b:c"]])
  })

  it("uses only printable keys, whatever partition a client sends", () => {
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
    transactionalStore(backend).take(partitions.map((partition) => check({ partition })))
    const [keys = []] = backend.asked
    expect(keys).toHaveLength(partitions.length)
    expect(keys).toContain(`3:a:b:${"x".repeat(128)}`)
    expect(keys.filter((key) => !/^[\x20-\x7e]{1,200}$/.test(key))).toEqual([])
    // A partition that looks like the hash of another partition gets a different key.
    const [hashed = ""] = keys.filter((key) => key.includes("#"))
    transactionalStore(backend).take([check({ partition: hashed.slice("3:a:b".length) })])
    expect(backend.asked[1]).not.toEqual([hashed])
  })

  it("writes only counters that have changed", () => {
    const backend = backendWith(KEPT)
    const store = transactionalStore(backend)
    store.take([check()])
    peekStore(store, [check()])
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

  it("does not rewrite a counter whose stored expiry is late enough", () => {
    const bucket = check({ policy: { ...POLICY, algorithm: "token-bucket" } })
    const backend = backendWith({ ...KEPT, expiresAtMs: NOW_MS + 60_000 })
    const store = transactionalStore(backend)
    peekStore(store, [bucket])
    peekStore(store, [{ ...bucket, policy: { ...bucket.policy, limit: 1 } }])
    const [first, second] = backend.changes
    expect(first).toEqual([])
    // With the lower limit, the same units are refilled half as fast.
    expect(second).toEqual([
      { key: "3:a:b:c", counter: { state: KEPT.state, expiresAtMs: NOW_MS + 120_000 } },
    ])
  })

  it.each([0, LATEST_MS])("accepts %d as its back end's time", (nowMs) => {
    expect(peekStore(transactionalStore(backendWith(undefined, nowMs)), [check()])).toMatchObject({ nowMs })
  })

  it("does not delete a counter that does not exist", () => {
    const backend = backendWith(null)
    transactionalStore(backend).reset([check()])
    expect(backend.changes).toEqual([[]])
  })

  it("treats an expired counter as missing", () => {
    const backend = backendWith({ ...KEPT, expiresAtMs: NOW_MS })
    expect(peekStore(transactionalStore(backend), [check()])).toMatchObject({ granted: true })
  })

  it.each<[string, unknown]>([
    ["a string", "counter"],
    ["an empty object", {}],
    ["no expiry", { state: KEPT.state }],
    ["no state", { expiresAtMs: KEPT.expiresAtMs }],
    ["a state that is null", { ...KEPT, state: null }],
    ["a fraction", { ...KEPT, state: { ...KEPT.state, current: 1.5 } }],
    ["a negative count", { ...KEPT, state: { ...KEPT.state, current: -1 } }],
    ["a count as a string", { ...KEPT, state: { ...KEPT.state, current: "2" } }],
    ["no start", { ...KEPT, state: { current: 2, previous: 0 } }],
    ["NaN", { ...KEPT, state: { ...KEPT.state, previous: Number.NaN } }],
    ["parts that are not a string", { ...KEPT, state: { ...KEPT.state, parts: [1] } }],
    ["invalid parts", { ...KEPT, state: { ...KEPT.state, parts: "x" } }],
  ])("rejects an invalid counter: %s", (_what, found) => {
    const backend = backendWith(found)
    const take = () => transactionalStore(backend).take([check()])
    expect(take).toThrow(StoreUnavailableError)
    const message =
      'The back end of the store returned invalid data: the value of "3:a:b:c" is not a valid counter.'
    expect(take).toThrow(expect.objectContaining({ message, kind: "invalid-answer" }))
    expect(backend.changes).toEqual([])
  })

  it.each(["1".repeat(40), `3${"~".repeat(400)}`])(
    "writes nothing if invalid parts would result in an invalid counter: %s",
    (parts) => {
      const policy: Policy = { ...POLICY, algorithm: "sliding-log", limit: 9_999 }
      const backend = backendWith({
        ...KEPT,
        state: { startMs: NOW_MS - 100, current: 3, previous: 1, parts },
      })
      const take = () => transactionalStore(backend).take([check({ policy, cost: 3 })])
      expect(take).toThrow(expect.objectContaining({ kind: "invalid-answer" }))
      expect(backend.changes).toEqual([])
    },
  )

  it("keeps a bucket that owes more than a year's quota only until a full bucket would expire", () => {
    const windowMs = 2_592_000_000
    const policy: Policy = { ...POLICY, algorithm: "token-bucket", limit: 1, windowMs }
    const state = { startMs: NOW_MS, current: 9_000_000_000_000, previous: 0 }
    const backend = backendWith({ ...KEPT, state })
    const answer = peekStore(transactionalStore(backend), [check({ policy })]) as StoreResult
    expect(answer).toMatchObject({ granted: false, checks: [{ state: { current: 1, previous: 0 } }] })
    const counter = { state, expiresAtMs: NOW_MS + windowMs }
    expect(backend.changes).toEqual([[{ key: "3:a:b:c", counter }]])
  })

  it.each([undefined, Number.NaN, -1, Number.POSITIVE_INFINITY, "1704067200000", LATEST_MS + 1])(
    "rejects an invalid time: %s",
    (nowMs) => {
      const backend = { ...backendWith(undefined) }
      const transact = (keys: readonly string[], change: ChangeCounters) =>
        void change(
          keys.map(() => undefined),
          nowMs as number,
        )
      const take = () => transactionalStore({ ...backend, transact }).take([check()])
      expect(take).toThrow(/returned invalid data: its time is .*, but must be in epoch milliseconds/)
    },
  )

  it("reports a back end that ends without calling change(), synchronously or asynchronously", async () => {
    const message = "finished transact() without calling change()"
    expect(() => transactionalStore({ transact() {} }).take([check()])).toThrow(message)
    const later = transactionalStore({ async transact() {} })
    await expect(later.take([check()])).rejects.toMatchObject({ kind: "invalid-answer" })
  })

  it("is shared, unless its back end is declared as not shared", () => {
    const { transact } = backendWith(undefined)
    expect(transactionalStore({ transact }).isShared).toBe(true)
    expect(transactionalStore({ transact, isShared: false }).isShared).toBe(false)
  })

  it("closes its back end once, and rejects calls afterwards", async () => {
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

  it.each([undefined, null, 5, {}, { transact: true }])("rejects an invalid back end: %s", (backend) => {
    expect(() => transactionalStore(backend as never)).toThrow(InvalidOptionError)
    const accepted = "an object with transact(keys, change)"
    const problems = [{ path: "", message: "the back end has no method transact()", accepted }]
    expect(() => transactionalStore(backend as never)).toThrow(expect.objectContaining({ problems }))
  })

  it.each(["isShared", "close"])("rejects a back end whose %s has the wrong type", (path) => {
    const problems = [expect.objectContaining({ path })]
    const create = () => transactionalStore({ ...backendWith(undefined), [path]: 5 } as never)
    expect(create).toThrow(expect.objectContaining({ problems }))
  })
})
