import { StoreUnavailableError } from "../../ground/errors.ts"
import { outsideRequests, soon } from "../../ground/time.ts"
import type { Refund } from "../store.ts"
import { allApplied, silent } from "./failure.ts"
import type { CallTimeout, Node } from "./node/node.ts"
import { PolicyTable } from "./scripts/script-input.ts"
import { REFUND } from "./scripts.ts"

/** Calls in flight at the most. */
const MOST_CALLS = 2
/** Refunds a call at the most: more of them would hold up Redis for everybody else. */
const MOST_REFUNDS = 64

/** Units on their way back, and who waits for that. */
interface Returning {
  readonly refund: Refund
  readonly key: string
  /** An instant of the monotonic clock. */
  readonly deadlineMs: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * The way back for the units of one server, or one slot of a cluster: refunds that come in one turn of the event loop, or
 * while calls are in flight, travel together. None is sent twice, and none after its deadline.
 */
export class RefundBatcher {
  readonly #nodeOf: () => Node
  readonly #inBackground: boolean
  readonly #queue: Returning[] = []
  #calls = 0

  /** `nodeOf` yields the server that is responsible now. */
  constructor(nodeOf: () => Node, inBackground: boolean) {
    this.#nodeOf = nodeOf
    this.#inBackground = inBackground
  }

  /**
   * Resolves when the server has them; rejects with StoreUnavailableError. Its outcome is "not-applied" only when none of them
   * was refunded.
   */
  async add(refunds: readonly Refund[], keys: readonly string[], { withinMs }: CallTimeout): Promise<void> {
    const node = this.#nodeOf()
    if (!this.#inBackground && node.breaker.isOpen) throw node.unavailable
    const deadlineMs = performance.now() + withinMs
    // What waits already is sent then, too, or when a call has ended.
    if (this.#queue.length === 0) soon(this.#pump)
    const each = refunds.map((refund, i) => {
      return new Promise<void>((resolve, reject) => {
        this.#queue.push({ refund, key: keys[i] as string, deadlineMs, resolve, reject })
      })
    })
    await allApplied(each)
  }

  /** Sends what can be sent: then nothing waits, or there are as many calls in flight as there may be. */
  readonly #pump = (): void => {
    while (this.#calls < MOST_CALLS && this.#queue.length > 0) {
      const batch = this.#queue.splice(0, MOST_REFUNDS).filter(isInTime)
      if (batch.length > 0) outsideRequests(() => void this.#send(batch))
    }
  }

  async #send(batch: readonly Returning[]): Promise<void> {
    this.#calls++
    try {
      await this.#ask(batch)
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    this.#calls--
    this.#pump()
  }

  async #ask(batch: readonly Returning[]): Promise<void> {
    let deadlineMs = Number.POSITIVE_INFINITY
    for (const returning of batch) deadlineMs = Math.min(deadlineMs, returning.deadlineMs)
    const policies = new PolicyTable()
    const numbers = batch.flatMap(({ refund: { policy, units, after } }) => [
      policies.numberOf(policy),
      units,
      after.startMs,
      after.current,
      after.previous,
    ])
    const keys = batch.map(({ key }) => key)
    const patience = { withinMs: deadlineMs - performance.now(), inBackground: this.#inBackground }
    const reply = await this.#nodeOf().ask(REFUND, keys, policies, numbers, patience)
    if (reply.length < 2) {
      throw new StoreUnavailableError("Redis was asked too late to refund the units.", {
        kind: "timeout",
        outcome: "not-applied",
      })
    }
  }
}

/** Whether it may still be sent; rejects it where it is too late. */
function isInTime({ deadlineMs, reject }: Returning): boolean {
  if (deadlineMs > performance.now()) return true
  reject(silent("connected", undefined, "not-applied"))
  return false
}
