import { setImmediate as nextTurn } from "node:timers/promises"
import { vi } from "vitest"
import type { FaultProxy } from "../servers/fault-proxy.ts"

/** A timeout that no call in a test exceeds, even on a busy machine. */
export const TIMEOUT_MS = 30_000

/** Resolves when the proxy has received this number of attempts to which it never responds. */
export async function unanswered(proxy: FaultProxy, count: number): Promise<void> {
  while (proxy.unanswered < count) await nextTurn()
}

/**
 * Makes a call, and advances the time past its timeout after the proxy has left an attempt without a response.
 * `meanwhile` runs before the timeout.
 */
export async function pastTimeout<Result>(
  proxy: FaultProxy,
  call: () => Promise<Result>,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<Result> {
  const arrived = unanswered(proxy, proxy.unanswered + 1)
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  try {
    const calling = call()
    calling.catch(() => {})
    await arrived
    await meanwhile()
    vi.advanceTimersByTime(TIMEOUT_MS)
    vi.useRealTimers()
    return await calling
  } finally {
    vi.useRealTimers()
  }
}
