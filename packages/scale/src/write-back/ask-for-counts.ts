import type { Store } from "@sluice/core"
import { type CounterReading, storeErrorOf } from "@sluice/core/stores"
import { CHARGE_MS } from "../in-front/charger.ts"
import type { Seen } from "../in-front/seen.ts"
import type { WrittenCounter } from "./written-counter.ts"

/** What a call for counts needs. */
export interface CountsCall {
  /** Returns the monotonic time of this process. */
  readonly nowMs: () => number
  /** Called with the error of each call. */
  readonly failed: (error: unknown) => void
  /** Returns whether another call was answered meanwhile. */
  readonly isAlive: () => boolean
}

/**
 * Asks a shared store for the counts of counters in one call. Calls `learn` with each count that comes. Returns whether
 * any count came. Never rejects. If a call fails, asks for each of its counters alone, because only one of them may be
 * on a server that fails, or be unreadable. Does not do so if the store is silent, where such calls would pile up.
 */
export async function askForCounts(
  store: Store,
  counters: readonly WrittenCounter[],
  call: CountsCall,
  learn: (counter: WrittenCounter, seen: Seen) => void,
): Promise<boolean> {
  try {
    return await ask(counters)
  } catch (error) {
    call.failed(error)
    if (counters.length === 1) return false
    if (storeErrorOf(error).kind === "timeout" && !call.isAlive()) return false
    const each = await Promise.all(counters.map((counter) => askForCounts(store, [counter], call, learn)))
    return each.some(Boolean)
  }

  async function ask(some: readonly WrittenCounter[]): Promise<boolean> {
    const sentMs = call.nowMs()
    const checks = some.map(({ policy, partition }) => ({ policy, partition, cost: 0, shadow: false }))
    const { nowMs: serverMs, counters: read } = await store.read(checks, CHARGE_MS)
    const arrivedMs = call.nowMs()
    for (const [i, counter] of some.entries()) {
      const { state } = read[i] as CounterReading
      learn(counter, { state, serverMs, sentMs, arrivedMs })
    }
    return some.length > 0
  }
}
