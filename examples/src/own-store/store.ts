import { ClosedError, type Store } from "@sluice/core"
import { type CounterState, type CounterStates, Counters } from "@sluice/core/stores"

/** A counter, and the time at which it may be deleted. */
interface Kept {
  readonly state: CounterState
  readonly emptyAtMs: number
}

/** Creates a store that keeps its counters in a `Map`. `now` returns epoch milliseconds. */
export function mapStore(now: () => number = Date.now): Store {
  const kept = new Map<string, Kept>()
  const states: CounterStates<string> = {
    read: (key) => kept.get(key)?.state,
    write(key, state, emptyAtMs) {
      kept.set(key, { state, emptyAtMs })
    },
    keep(key, emptyAtMs) {
      const counter = kept.get(key)
      if (counter !== undefined && counter.emptyAtMs < emptyAtMs) kept.set(key, { ...counter, emptyAtMs })
    },
    // Only a store that evicts counters needs to know which clients are refused.
    block() {},
    remove: (key) => kept.delete(key),
  }
  const counters = new Counters(states, (counter, partition) => JSON.stringify([counter, partition]))
  const wholeMs = () => Math.floor(now())
  let isClosed = false

  function open(): Counters<string> {
    if (isClosed) throw new ClosedError("The store has been closed.")
    return counters
  }

  /** Deletes the oldest counter if it has expired. A call adds only one or a few counters, so the `Map` stays small. */
  function sweep(nowMs: number): void {
    const [oldest] = kept
    if (oldest !== undefined && oldest[1].emptyAtMs <= nowMs) kept.delete(oldest[0])
  }

  return {
    isShared: false,
    take(checks) {
      const nowMs = wholeMs()
      sweep(nowMs)
      return open().take(checks, nowMs)
    },
    read: (checks) => open().read(checks, wholeMs()),
    refund: (refunds) => open().refund(refunds, wholeMs()),
    reset: (keys) => open().reset(keys),
    close() {
      isClosed = true
      kept.clear()
    },
  }
}
