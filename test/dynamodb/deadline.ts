import { setImmediate as nextTurn } from "node:timers/promises"
import { vi } from "vitest"
import type { FaultProxy } from "../servers/fault-proxy.ts"

/** A timeout for the tables of tests that no call reaches, however busy the machine is. */
export const TIMEOUT_MS = 30_000

/** Resolves when this number of attempts has arrived at the proxy that it never responds to. */
export async function unanswered(proxy: FaultProxy, count: number): Promise<void> {
  while (proxy.unanswered < count) await nextTurn()
}

/**
 * Makes a call, and lets its timeout pass while the proxy leaves an attempt without a response. `meanwhile` runs before
 * the timeout.
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
