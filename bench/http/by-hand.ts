import { HEADERS, WINDOW_MS } from "./setup.ts"

const [[POLICY_NAME, POLICY], [LIMIT_NAME]] = HEADERS

/**
 * Returns the cheapest possible limiter with correct headers: a count in a Map, a window by the clock, and the values
 * of both fields. The limiter supports one rule, never forgets a client, and gives the app no information.
 */
export function countByHand(limit: number): (address: string | undefined) => typeof HEADERS {
  const counts = new Map<string | undefined, { startMs: number; count: number }>()
  return (address) => {
    const nowMs = Date.now()
    let counter = counts.get(address)
    if (counter === undefined || nowMs >= counter.startMs + WINDOW_MS) {
      counter = { startMs: nowMs - (nowMs % WINDOW_MS), count: 0 }
      counts.set(address, counter)
    }
    counter.count++
    const remaining = Math.max(0, limit - counter.count)
    const seconds = Math.ceil((counter.startMs + WINDOW_MS - nowMs) / 1000)
    return [
      [POLICY_NAME, POLICY],
      [LIMIT_NAME, `"ip-1h";r=${remaining};t=${seconds}`],
    ]
  }
}
