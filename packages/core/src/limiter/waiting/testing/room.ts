import { setImmediate as nextTurn } from "node:timers/promises"
import type { Decider } from "../../../decision/decider.ts"
import type { Decision } from "../../../decision/decision.ts"
import type { RuleCheck } from "../../../decision/rule-check.ts"
import { deciderOver } from "../../../decision/testing/rule-checks.ts"
import { type ManualClock, manualClock } from "../../../ground/manual-clock.ts"
import type { MaybePromise } from "../../../ground/maybe-promise.ts"
import { memoryStore } from "../../../stores/memory/memory-store.ts"
import type { Check, Store } from "../../../stores/store.ts"
import type { WaitOptions } from "../wait-options.ts"
import { WaitingRoom } from "../waiting-room.ts"

interface RoomAndStore {
  readonly clock: ManualClock
  readonly decider: Decider
  readonly room: WaitingRoom
  /** Number of store calls so far. */
  readonly calls: { takes: number; reads: number; returns: number }
  /** Results of the store that are pending. */
  readonly pending: readonly unknown[]
  /** The time at which each request was admitted, in milliseconds, or its refusal. */
  readonly log: readonly string[]
  enter(name: string, ruleChecks: readonly RuleCheck[], patience?: Partial<WaitOptions>): void
  /** Lets the store respond to the pending call with this index, in the order of the calls. */
  answer(index?: number): Promise<void>
  pass(ms: number): Promise<void>
}

/**
 * Sets up a room over a memory store that decides immediately. The store responds later to calls for which `isSlow`
 * returns true.
 */
export function setUp(
  isSlow: (checks: readonly Check[], isPeek: boolean) => boolean = () => false,
): RoomAndStore {
  const clock = manualClock()
  const inner = memoryStore({ clock })
  const calls = { takes: 0, reads: 0, returns: 0 }
  const pending: (() => void)[] = []
  const later = <Value>(value: Value, slow: boolean): MaybePromise<Value> =>
    slow ? new Promise((resolve) => pending.push(() => resolve(value))) : value
  const store: Store = {
    take(checks) {
      calls.takes++
      return later(inner.take(checks), isSlow(checks, false))
    },
    read(checks) {
      calls.reads++
      return later(inner.read(checks), isSlow(checks, true))
    },
    refund(refunds) {
      calls.returns++
      inner.refund(refunds)
    },
    reset: (keys) => inner.reset(keys),
    close: () => inner.close(),
  }
  const decider = deciderOver(store, clock)
  const room = new WaitingRoom(decider, clock)
  const log: string[] = []
  const startMs = clock.now()
  const enter = (
    name: string,
    ruleChecks: readonly RuleCheck[],
    patience: Partial<WaitOptions> = {},
  ): void => {
    const write = (what: string) => void log.push(`${clock.now() - startMs} ${name}${what}`)
    const all = { maxWaitMs: Number.POSITIVE_INFINITY, maxWaiting: 1_000, waitsFor: () => true }
    const own = Object.create(all, Object.getOwnPropertyDescriptors(patience)) as WaitOptions
    void Promise.resolve(room.enter(ruleChecks, own)).then(
      ({ allowed, policy }: Decision) => write(allowed ? "" : `: refused by ${policy}`),
      (error: Error) => write(`: ${error.message}`),
    )
  }
  const answer = async (index = 0): Promise<void> => {
    pending.splice(index, 1)[0]?.()
    await nextTurn()
  }
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await nextTurn()
  }
  return { clock, decider, room, calls, pending, log, enter, answer, pass }
}
