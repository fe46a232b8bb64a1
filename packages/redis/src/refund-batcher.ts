import { StoreUnavailableError } from "@sluice/core"
import { outsideRequests } from "@sluice/core/kit"
import { type Refund, releases, soon } from "@sluice/core/stores"
import { allApplied, failureOf, silent } from "./failure.ts"
import type { CallTimeout, Node } from "./node/node.ts"
import { PolicyTable } from "./scripts/script-input.ts"
import { REFUND } from "./scripts.ts"

/** Most calls in flight, unless the next call is full. */
const MOST_CALLS = 2
/**
 * Most calls in flight if the next call is full. With a round trip of 80 ms, this allows up to 9,600 refunds per
 * second. A server nearby replies so fast that this limit is not reached.
 */
const MOST_FULL_CALLS = 12
/** Most refunds per call. More of them would block Redis for other clients. */
const MOST_REFUNDS = 64
/**
 * Number of expired refunds that are rejected before other work of the event loop may run. Each rejection takes about
 * 20 µs.
 */
const EXPIRED_AT_ONCE = 256

/** A refund that is queued or in flight, and the callbacks of the caller that waits for it. */
interface Returning {
  readonly refund: Refund
  readonly key: string
  /** An instant of the monotonic clock. */
  readonly deadlineMs: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * A sender of refunds to one server, or to one slot of a cluster. Refunds that arrive in one tick of the event loop,
 * or while calls are in flight, share a call. No refund is sent twice or after its deadline.
 */
export class RefundBatcher {
  readonly #nodeOf: () => Node
  readonly #inBackground: boolean
  readonly #queue: Returning[] = []
  #calls = 0
  /**
   * True if the last call got no reply. Then only one call is made at a time, because the client would collect all
   * calls to a frozen server.
   */
  #isSilent = false

  /** `nodeOf` returns the server that is currently responsible. */
  constructor(nodeOf: () => Node, inBackground: boolean) {
    this.#nodeOf = nodeOf
    this.#inBackground = inBackground
  }

  /**
   * Resolves when the server has applied the refunds. Rejects with StoreUnavailableError, whose outcome is
   * "not-applied" only if none of them was applied.
   */
  async add(refunds: readonly Refund[], keys: readonly string[], { withinMs }: CallTimeout): Promise<void> {
    const node = this.#nodeOf()
    if (!this.#inBackground && node.breaker.isOpen) throw node.unavailable
    const deadlineMs = performance.now() + withinMs
    // If the queue is not empty, `#pump` already runs soon or when a call ends.
    if (this.#queue.length === 0) soon(this.#pump)
    const each = refunds.map((refund, i) => {
      return new Promise<void>((resolve, reject) => {
        this.#queue.push({ refund, key: keys[i] as string, deadlineMs, resolve, reject })
      })
    })
    await allApplied(each)
  }

  /** Sends batches until the queue is empty or the maximum of calls is in flight. */
  readonly #pump = (): void => {
    let expired = 0
    while (this.#queue.length > 0) {
      const most = this.#queue.length >= MOST_REFUNDS ? MOST_FULL_CALLS : MOST_CALLS
      if (this.#calls >= (this.#isSilent ? 1 : most)) return
      if (expired >= EXPIRED_AT_ONCE) {
        outsideRequests(() => setImmediate(this.#pump))
        return
      }
      const next = this.#queue.splice(0, MOST_REFUNDS)
      const batch = inTime(next)
      expired += next.length - batch.length
      if (batch.length > 0) outsideRequests(() => void this.#send(batch))
    }
  }

  async #send(batch: readonly Returning[]): Promise<void> {
    this.#calls++
    try {
      await this.#ask(batch)
      this.#isSilent = false
      for (const { resolve } of batch) resolve()
    } catch (error) {
      this.#isSilent = failureOf(error).kind === "timeout"
      for (const { reject } of batch) reject(error)
    }
    this.#calls--
    this.#pump()
  }

  async #ask(batch: readonly Returning[]): Promise<void> {
    const deadlineMs = Math.min(...batch.map((returning) => returning.deadlineMs))
    const policies = new PolicyTable()
    const merged = withMergedReleases(batch)
    const numbers = refundNumbers(merged, policies)
    const keys = merged.map(({ key }) => key)
    const patience = { withinMs: deadlineMs - performance.now(), inBackground: this.#inBackground }
    const reply = await this.#nodeOf().ask(REFUND, keys, policies, numbers, patience)
    if (reply.length < 2) {
      throw new StoreUnavailableError("The refund reached Redis too late, so no units were refunded.", {
        kind: "timeout",
        outcome: "not-applied",
      })
    }
  }
}

/** Returns the refunds that may still be sent. Rejects all expired refunds with the same error. */
function inTime(batch: readonly Returning[]): readonly Returning[] {
  const nowMs = performance.now()
  const late = batch.filter(({ deadlineMs }) => deadlineMs <= nowMs)
  if (late.length === 0) return batch
  const error = silent("connected", undefined, "not-applied")
  for (const { reject } of late) reject(error)
  return batch.filter(({ deadlineMs }) => deadlineMs > nowMs)
}

/** Refunds of the same counter, as one refund of `units`. */
interface Merged extends Pick<Returning, "refund" | "key"> {
  units: number
}

/**
 * Merges releases of permits that follow each other, if their counter and window are the same. So a rule with many
 * short requests needs one command per call.
 */
function withMergedReleases(batch: readonly Returning[]): readonly Merged[] {
  const merged: Merged[] = []
  const last = new Map<string, Merged>()
  for (const { refund, key } of batch) {
    const { policy, units, after } = refund
    const before = last.get(key)
    const areReleases = releases(policy) && units > 0 && before !== undefined && before.units > 0
    if (areReleases && before.refund.after.startMs === after.startMs) before.units += units
    else {
      const one = { refund, key, units }
      merged.push(one)
      last.set(key, one)
    }
  }
  return merged
}

/** Returns the numbers of the refunds for the script. Equal refunds of consecutive counters are sent once. */
function refundNumbers(merged: readonly Merged[], policies: PolicyTable): readonly number[] {
  const numbers: number[] = []
  let run: readonly number[] = []
  for (const { refund, units } of merged) {
    const { policy, after } = refund
    // The script does not read the counts of permits. Without them, more releases are equal.
    const counts = releases(policy) ? [0, 0] : [after.current, after.previous]
    const one = [policies.numberOf(policy), units, after.startMs, ...counts]
    if (numbers.length > 0 && one.every((number, i) => number === run[i])) {
      const count = numbers.length - one.length - 1
      numbers[count] = (numbers[count] as number) + 1
    } else numbers.push(1, ...one)
    run = one
  }
  return numbers
}
