import type { Check, Refund, Store, StoreResult } from "../../packages/core/src/stores/store.ts"
import { leasedStore } from "../../packages/scale/src/leased/leased-store.ts"
import type { Counter } from "./counter.ts"
import type { Timeline } from "./timeline.ts"

/** Latency from a process to Redis, and from Redis back to the process. */
const ONE_WAY_MS = 0.5

/** A call to Redis that has not been sent yet. */
interface OpenCall {
  readonly works: (() => void)[]
  readonly replies: (() => void)[]
}

/** A process that leases units from a counter. The network delay to the counter is half a millisecond. */
export class LeasedProcess {
  readonly store: Store
  /**
   * Calls to Redis. The requests and reservations of a millisecond share one call, and its refunds share another
   * call.
   */
  calls = 0
  readonly #timeline: Timeline
  readonly #open = new Map<"take" | "refund", OpenCall>()

  constructor(counter: Counter, timeline: Timeline) {
    this.#timeline = timeline
    const take = ([check]: readonly Check[]): StoreResult => {
      const nowMs = Math.floor(timeline.nowMs)
      const { cost } = check as Check
      const state = counter.take(cost, nowMs)
      const granted = state !== undefined
      return { nowMs, granted, checks: [{ state: state ?? counter.at(nowMs), taken: granted ? cost : 0 }] }
    }
    const refund = (refunds: readonly Refund[]): void => {
      const nowMs = Math.floor(timeline.nowMs)
      for (const { units, after } of refunds) counter.charge({ units: -units, after }, nowMs)
    }
    const remote: Store = {
      isShared: true,
      take: (checks) => this.#call("take", () => take(checks)),
      refund: (refunds) => this.#call("refund", () => refund(refunds)),
      read: () => ({ nowMs: 0, counters: [] }),
      reset: () => undefined,
      close: () => undefined,
    }
    const wait = (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason))
        timeline.after(ms, resolve)
      })
    this.store = leasedStore(remote, { clock: { now: () => timeline.nowMs, wait } })
  }

  /** Runs the work at Redis in the call of this millisecond. Resolves when the call's reply arrives. */
  #call<Answer>(kind: "take" | "refund", work: () => Answer): Promise<Answer> {
    const call = this.#open.get(kind) ?? this.#send(kind)
    return new Promise((resolve) => {
      call.works.push(() => {
        const answer = work()
        call.replies.push(() => resolve(answer))
      })
    })
  }

  #send(kind: "take" | "refund"): OpenCall {
    const call: OpenCall = { works: [], replies: [] }
    this.#open.set(kind, call)
    this.calls++
    this.#timeline.after(ONE_WAY_MS, () => {
      this.#open.delete(kind)
      for (const work of call.works) work()
      this.#timeline.after(ONE_WAY_MS, () => {
        for (const reply of call.replies) reply()
      })
    })
    return call
  }
}
