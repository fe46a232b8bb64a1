import type { CounterState } from "../../algorithms/algorithm.ts"
import { algorithmOf } from "../../algorithms/by-name.ts"
import { ceilingOf } from "../../policy.ts"
import { countsRefusals } from "../refusals.ts"
import type { Answer, Check, CounterKey } from "../store.ts"

/** Refusals kept at the most: some 20 MB. What is over goes first, then a counter's oldest, and then Redis is asked again. */
const MOST_REFUSALS = 100_000
/** Bytes of the parts of their states: a full log has thousands, so of such refusals fewer are kept. */
const MOST_BYTES = 16 * 1024 * 1024
/**
 * Of a counter's refusals one in so many goes at once. To find the first of a Map, V8 goes through the places of all that were
 * deleted before it: one by one, of a hundred thousand, each would take as long as to ask Redis.
 */
const ONE_IN = 1_000
/** What is over is looked for when there is no room, so often at the most, and so many are dropped then. */
const LOOK_EVERY_MS = 100
const MOST_OVER_AT_ONCE = 1_000

/** When a question was sent and when its answer had come, in milliseconds of one clock. */
export interface Between {
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

/** A refusal that Redis gave. */
interface Refusal {
  readonly cost: number
  readonly limit: number
  readonly ceiling: number
  readonly state: CounterState
  /** The server's time at which it was given. */
  readonly serverMs: number
  /** By this process' clock, the instants between which that was. */
  readonly sentAtMs: number
  readonly answeredAtMs: number
  /** How long it is believed. */
  readonly forMs: number
}

/** A refusal as it stands now. */
interface Known {
  readonly state: CounterState
  readonly serverMs: number
}

/**
 * Remembers who is refused until when, so that a client that keeps knocking costs Redis nothing. A refusal answers only
 * checks that ask as much or more of a limit that is as low or lower: what others take meanwhile can only prolong it.
 * Units that another process gives back, or a counter that it resets, are seen after `longestMs`.
 */
export class DenyCache {
  readonly #longestMs: number
  /** By counter and partition: a key need not be put together to be told that it is refused. */
  readonly #refusals = new Map<string, Map<string, Refusal>>()
  #size = 0
  #bytes = 0
  #lookedAtMs = Number.NEGATIVE_INFINITY

  /** 0 turns it off. */
  constructor(longestMs: number) {
    this.#longestMs = longestMs
  }

  get size(): number {
    return this.#size
  }

  /** Of the parts of the states that are kept. */
  get bytes(): number {
    return this.#bytes
  }

  /** Remembers which checks of a request refused it at the server's time in the answer, which was between these instants. */
  rememberAll(checks: readonly Check[], { checks: counted, nowMs }: Answer, between: Between): void {
    const isWatched = checks.some(countsRefusals)
    checks.forEach((check, i) => {
      const state = counted[i]?.state
      if (state === undefined || check.shadow || !isAnswered(check, isWatched)) return
      this.remember(check, state, nowMs, between)
    })
  }

  /** Remembers what was refused at this time of the server's, which was between these instants; nothing of what was not. */
  remember(check: Check, state: CounterState, serverMs: number, { sentAtMs, answeredAtMs }: Between): void {
    if (this.#longestMs === 0) return
    const { policy, partition, cost } = check
    const waitMs = algorithmOf(policy).retryAfterMs(state, policy, cost, serverMs)
    // What never fits says nothing about the client's next request.
    if (waitMs === Number.POSITIVE_INFINITY) return
    // The server's time is cut to a whole millisecond: it was that much later, and the end may be that much nearer.
    const certainMs = waitMs - 1
    if (certainMs <= 0) return
    this.forget(check)
    const own = this.#refusalsOf(policy.counter)
    own.set(partition, {
      cost,
      limit: policy.limit,
      ceiling: ceilingOf(policy),
      state,
      serverMs,
      sentAtMs,
      answeredAtMs,
      forMs: Math.min(certainMs, this.#longestMs),
    })
    this.#size++
    this.#bytes += bytesOf(state)
    if (this.#size > MOST_REFUSALS || this.#bytes > MOST_BYTES) this.#forgetOver(answeredAtMs)
    while (this.#size > MOST_REFUSALS) this.#forgetOldest(policy.counter, own, () => true)
    while (this.#bytes > MOST_BYTES)
      this.#forgetOldest(policy.counter, own, ({ state }) => bytesOf(state) > 0)
  }

  /**
   * The answer to a request of which a check is known to be refused: by the one with the longest wait, since whoever
   * waits for another one would be refused again. Undefined when Redis has to be asked.
   */
  answer(checks: readonly Check[], nowMs: number): Answer | undefined {
    let binding: Known | undefined
    let place = 0
    let longestMs = 0
    const isWatched = checks.some(countsRefusals)
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Check
      if (!isAnswered(check, isWatched)) continue
      const known = this.#known(check, nowMs)
      if (known === undefined) continue
      // Stryker disable next-line ConditionalExpression: worked out it is above 0 too
      const waitMs = checks.length === 1 ? certainWaitMs(known, check) : waitMsOf(known, check)
      if (waitMs <= longestMs) continue
      longestMs = waitMs
      binding = known
      place = i
    }
    if (binding === undefined) return undefined
    const { state, serverMs } = binding
    const told = checks.map((_, i) => (i === place ? { state, taken: 0 } : undefined))
    return { nowMs: serverMs, granted: false, checks: told, isRemembered: true }
  }

  /** What is known of a check that would be refused. */
  #known(check: Check, nowMs: number): Known | undefined {
    const { policy, partition, cost, shadow } = check
    const refusal = this.#refusals.get(policy.counter)?.get(partition)
    if (refusal === undefined || shadow) return undefined
    if (isOver(refusal, nowMs)) {
      this.forget(check)
      return undefined
    }
    // Of a bucket the limit is how fast units come back, and says no more than that.
    const isHigher = ceilingOf(policy) > refusal.ceiling
    // What elastic throttling admits now makes the wait longer than the one that is remembered.
    if (isHigher && policy.limit === refusal.limit) this.forget(check)
    if (isHigher || cost < refusal.cost || policy.limit > refusal.limit) return undefined
    // It is believed a little too short, and the wait that it tells is a little too long: both are true so.
    const serverMs = refusal.serverMs + Math.max(0, Math.floor(nowMs - refusal.answeredAtMs))
    return { state: algorithmOf(policy).at(refusal.state, policy, serverMs), serverMs }
  }

  forget({ policy: { counter }, partition }: CounterKey): void {
    const refusals = this.#refusals.get(counter)
    if (refusals !== undefined) this.#drop(counter, refusals, partition)
  }

  clear(): void {
    this.#refusals.clear()
    this.#size = 0
    this.#bytes = 0
  }

  #drop(counter: string, refusals: Map<string, Refusal>, partition: string): void {
    const refusal = refusals.get(partition)
    if (refusal === undefined) return
    refusals.delete(partition)
    this.#size--
    this.#bytes -= bytesOf(refusal.state)
    // Stryker disable next-line ConditionalExpression: what is empty tells nothing, but in years of new rules it would add up
    if (refusals.size === 0) this.#refusals.delete(counter)
  }

  #refusalsOf(counter: string): Map<string, Refusal> {
    let refusals = this.#refusals.get(counter)
    if (refusals === undefined) {
      refusals = new Map()
      this.#refusals.set(counter, refusals)
    }
    return refusals
  }

  /**
   * The oldest of the same counter, or where it has no other, of the first that has: a flood pushes out its own. Only one that
   * takes what is needed, where any counter's oldest does.
   */
  #forgetOldest(counter: string, own: Map<string, Refusal>, takes: (refusal: Refusal) => boolean): void {
    if (own.size > 1 && this.#dropOldest(counter, own, takes)) return
    for (const which of [takes, () => true]) {
      for (const [name, refusals] of this.#refusals) {
        if (name !== counter && this.#dropOldest(name, refusals, which)) return
      }
    }
    this.#dropOldest(counter, own, () => true)
  }

  #dropOldest(name: string, refusals: Map<string, Refusal>, takes: (refusal: Refusal) => boolean): boolean {
    const most = Math.ceil(refusals.size / ONE_IN)
    let dropped = 0
    for (const [partition, oldest] of refusals) {
      if (dropped === most || !takes(oldest)) break
      this.#drop(name, refusals, partition)
      dropped++
    }
    return dropped > 0
  }

  /** Nobody may ever ask for them again, and then they would keep the other counters' from being remembered for good. */
  #forgetOver(nowMs: number): void {
    // Stryker disable next-line ConditionalExpression,EqualityOperator: it would be looked for with each one that comes
    if (Math.abs(nowMs - this.#lookedAtMs) < LOOK_EVERY_MS) return
    this.#lookedAtMs = nowMs
    let left = MOST_OVER_AT_ONCE
    for (const [counter, refusals] of this.#refusals) {
      for (const [partition, oldest] of refusals) {
        if (left === 0 || !isOver(oldest, nowMs)) break
        this.#drop(counter, refusals, partition)
        left--
      }
    }
  }
}

/** Whether it is not believed any more; a clock that went back tells nothing. */
function isOver({ sentAtMs, forMs }: Refusal, nowMs: number): boolean {
  const elapsedMs = nowMs - sentAtMs
  return !(elapsedMs >= 0 && elapsedMs < forMs)
}

/** How long who is refused has to wait. A block that has been made shorter is over earlier than it was believed to be. */
function waitMsOf({ state, serverMs }: Known, { policy, cost }: Check): number {
  return algorithmOf(policy).retryAfterMs(state, policy, cost, serverMs)
}

/** The same of an only check, of which it matters no more than that it waits: of all but blocks that is known. */
function certainWaitMs(known: Known, check: Check): number {
  // Stryker disable next-line ConditionalExpression: worked out it is above 0 too
  return check.policy.penalty === undefined ? 1 : waitMsOf(known, check)
}

/** Where refusals count, every one has to be seen; but in a block, which they do not prolong. */
function isAnswered({ policy }: Check, isWatched: boolean): boolean {
  return !isWatched || policy.algorithm === "penalty"
}

/** Parts are ASCII. */
function bytesOf({ parts = "" }: CounterState): number {
  return parts.length
}
