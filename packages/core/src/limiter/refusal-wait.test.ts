import { afterEach, expect, it, vi } from "vitest"
import { slidingWindow } from "../algorithms/sliding-window.ts"
import { manualClock } from "../ground/manual-clock.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store } from "../stores/store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"

afterEach(() => {
  vi.restoreAllMocks()
})

/**
 * Fills the counter of a client. Returns the number of times that the wait of the next request, which is refused, is
 * computed.
 */
async function computedWaits(store: Store): Promise<number> {
  const limiter = createLimiter({ limit: 1, window: "1 minute", store, clock: manualClock() })
  await limiter.decide({ remoteAddress: "192.0.2.1" })
  const computed = vi.spyOn(slidingWindow, "retryAfterMs")
  const { allowed, retryAfterMs } = await limiter.decide({ remoteAddress: "192.0.2.1" })
  const { length } = computed.mock.calls
  expect([allowed, retryAfterMs > 0]).toEqual([false, true])
  await limiter.close()
  return length
}

it("the wait of a refusal is computed once, and the result of a built-in store is not validated", async () => {
  expect(await computedWaits(memoryStore({ clock: manualClock() }))).toBe(1)
})

it("the result of a custom store is validated, which computes the waits again", async () => {
  expect(await computedWaits(methodsOf(memoryStore({ clock: manualClock() })))).toBeGreaterThan(1)
})
