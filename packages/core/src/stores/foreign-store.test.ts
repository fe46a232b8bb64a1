import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { ClosedError, StoreUnavailableError } from "../ground/errors.ts"
import { manualClock } from "../ground/manual-clock.ts"
import { foreignStore } from "./foreign-store.ts"
import { memoryStore } from "./memory/memory-store.ts"
import type { Refund, Store, StoreEvent } from "./store.ts"
import { fixedCheck } from "./testing/checks.ts"
import { methodsOf } from "./testing/methods-of.ts"

const CHECKS = [fixedCheck("a", 5, 2), fixedCheck("b", 5)]

/** Wraps a memory store as a third-party store and returns its guard. `over` replaces methods of the store. */
function guarded(over: (memory: Store) => Partial<Store>) {
  const memory = memoryStore({ clock: manualClock() })
  const store: Store = { ...methodsOf(memory), ...over(memory) }
  const used = (): readonly unknown[] => memory.read(CHECKS).counters.map(({ state }) => state.current)
  return { store, guard: foreignStore(store), used }
}

describe("the guard of a third-party store", () => {
  it("is created once per store, but not for Sluice's own stores", () => {
    const { store, guard } = guarded(() => ({}))
    expect(foreignStore(store)).toBe(guard)
    expect(foreignStore(guard)).toBe(guard)
    const memory = memoryStore()
    expect(foreignStore(memory)).toBe(memory)
    memory.take = () => expect.unreachable()
    expect(foreignStore(memory)).not.toBe(memory)
  })

  it.each<[string, Partial<Store>]>([
    ["throws", { take: () => fail(new TypeError("reset")) }],
    ["rejects", { take: () => Promise.reject(new TypeError("reset")) }],
    [
      "returns a thenable that throws",
      { take: () => new Proxy({}, { get: () => () => fail(new TypeError("reset")) }) as never },
    ],
  ])("rejects with a StoreUnavailableError if the store's take() %s", async (_how, over) => {
    const { guard } = guarded(() => over)
    const error = await take(guard).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ message: "The store failed: reset", cause: { message: "reset" } })
  })

  it("rejects calls with a ClosedError after it is closed", async () => {
    const { guard } = guarded(() => ({}))
    await guard.close()
    await expect(take(guard)).rejects.toBeInstanceOf(ClosedError)
  })

  it("rejects at the deadline, and refunds the units that the store takes later", async () => {
    let answer = (): void => {}
    const { guard, used } = guarded((memory) => ({
      take: (checks) => new Promise((resolve) => (answer = () => resolve(memory.take(checks)))),
    }))
    const error = await take(guard, 5).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ kind: "timeout", message: "The store did not respond within 5 ms." })
    expect(used()).toEqual([0, 0])
    answer()
    expect(used()).toEqual([2, 1])
    await nextTurn()
    expect(used()).toEqual([0, 0])
  })

  it("emits an event if units that were taken too late cannot be refunded", async () => {
    let answer = (): void => {}
    const { guard, used } = guarded((memory) => ({
      take: (checks) => new Promise((resolve) => (answer = () => resolve(memory.take(checks)))),
      refund: () => Promise.reject(new Error("gone")),
    }))
    const events: StoreEvent[] = []
    guard.subscribe?.((event) => events.push(event))
    await take(guard, 5).catch(() => undefined)
    answer()
    await nextTurn()
    expect(used()).toEqual([2, 1])
    expect(events).toMatchObject([{ type: "refund-lost", error: { message: "The store failed: gone" } }])
  })

  it("does not refund units that the store takes in time, or that it takes without a deadline", async () => {
    const { guard, used } = guarded((memory) => ({
      take: async (checks) => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        return memory.take(checks)
      },
    }))
    expect(await take(guard)).toMatchObject({ granted: true })
    await nextTurn()
    expect(used()).toEqual([2, 1])
    expect(await take(guard, 5_000)).toMatchObject({ granted: true })
    await nextTurn()
    expect(used()).toEqual([4, 2])
  })

  it("does not refund a late result that took no units", async () => {
    let refunds = 0
    let answer = (): void => {}
    const { guard } = guarded((memory) => ({
      take: () => new Promise((resolve) => (answer = () => resolve(memory.take([])))),
      refund: () => void refunds++,
    }))
    await Promise.resolve(guard.take([], 5)).catch(() => undefined)
    answer()
    await nextTurn()
    expect(refunds).toBe(0)
  })

  it("creates one error for equal failures, and another one for another failure", async () => {
    let message = "reset"
    const { guard } = guarded(() => ({ take: () => Promise.reject(new Error(message)) }))
    const failure = (): Promise<unknown> => take(guard).catch((thrown: unknown) => thrown)
    const first = await failure()
    expect(await failure()).toBe(first)
    message = "refused"
    expect(await failure()).toMatchObject({ message: "The store failed: refused" })
  })

  it("is shared if the store is, and stops passing on events", async () => {
    const listeners = new Set<(event: StoreEvent) => void>()
    const { guard } = guarded(() => ({
      isShared: true,
      subscribe(listener) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }))
    expect(guard.isShared).toBe(true)
    const stop = guard.subscribe?.(() => undefined)
    expect(listeners.size).toBe(1)
    stop?.()
    expect(listeners.size).toBe(0)
    const silent = guarded(() => ({ subscribe: undefined as never }))
    expect(silent.guard.isShared).toBeUndefined()
    expect(silent.guard.subscribe?.(() => undefined)).not.toThrow()
  })

  it("measures round-trip times, unless the store reports its own status", async () => {
    const { guard } = guarded((memory) => ({ take: async (checks) => memory.take(checks) }))
    expect(guard.status?.recentRoundTripsMs).toEqual([])
    await take(guard)
    expect(guard.status?.recentRoundTripsMs).toEqual([expect.any(Number)])
    const status = { openBreakers: 1, recentRoundTripsMs: [7] }
    expect(guarded(() => ({ status })).guard.status).toEqual(status)
  })

  it.each<[string, (store: Store, refunds: Refund[]) => unknown]>([
    ["refund", (store, refunds) => store.refund(refunds, 5)],
    ["reset", (store) => store.reset(CHECKS, 5)],
    ["read", (store) => store.read(CHECKS, 5)],
  ])("also applies the deadline to %s()", async (method, call) => {
    const { guard } = guarded(() => ({ [method]: () => new Promise(() => undefined) }))
    await expect((async () => call(guard, []))()).rejects.toMatchObject({ kind: "timeout" })
  })
})

function fail(error: Error): never {
  throw error
}

async function take(store: Store, withinMs?: number) {
  return store.take(CHECKS, withinMs)
}
