import { type Store, StoreUnavailableError } from "@sluice/core"
import { BACKGROUND_REFUND_MS, type CounterReading, type Refund, storeErrorOf } from "@sluice/core/stores"
import type { CallsInFlight } from "../in-front/calls.ts"
import { CHARGE_MS, type Charger } from "../in-front/charger.ts"
import { Charges, isStillCounted } from "../in-front/charges.ts"
import type { Sweep } from "../in-front/sweep.ts"
import type { ParsedWriteBackOptions } from "./options.ts"
import { MOST_AT_ONCE, MOST_IN_FLIGHT, Replies, SETTLED_TOGETHER } from "./replies.ts"
import type { WrittenCounter } from "./written-counter.ts"

/** The objects that a settler shares with its store. */
interface SettlerParts {
  readonly wrapped: Store
  readonly charger: Charger
  readonly inFlight: CallsInFlight
  readonly sweep: Sweep
}

/** Settles counters some time after a request: charges their units, and then reads the shared counts. */
export class Settler {
  /** Units that are not charged yet. */
  readonly charges = new Charges()
  readonly replies: Replies
  /** The server's time minus the time of this process, according to the latest reply. */
  aheadMs = 0
  readonly #parts: SettlerParts
  readonly #options: ParsedWriteBackOptions
  /** Counters to settle. All counters wait equally long, so the first counter in the set is always due first. */
  readonly #due = new Set<WrittenCounter>()
  /** Charges that were given up, because too many counters wait. The next sweep reports these charges as lost. */
  #givenUp: Refund[] = []
  #isClosing = false

  constructor(parts: SettlerParts, options: ParsedWriteBackOptions) {
    this.#parts = parts
    this.#options = options
    this.replies = new Replies(options.settleMs, options.clock)
  }

  /** Plans to settle the counter after `settleMs`, unless its settlement is already planned. */
  plan(counter: WrittenCounter, nowMs: number): void {
    if (counter.dueMs !== undefined || this.#isClosing) return
    counter.dueMs = nowMs + this.#options.settleMs
    this.#due.add(counter)
    this.#parts.sweep.plan(counter.dueMs, nowMs)
  }

  /** Applies a refund or a charge to the counter now, and to the shared counter later. */
  apply(counter: WrittenCounter, refund: Refund): void {
    const nowMs = this.#nowMs()
    counter.refund([refund], nowMs)
    this.#defer(counter, refund, nowMs)
  }

  #defer(counter: WrittenCounter, { units, after }: Refund, nowMs: number): void {
    this.charges.add(counter, -units, after)
    this.plan(counter, nowMs)
  }

  /** Cancels the settlement of a counter that is reset. */
  forget(counter: WrittenCounter): void {
    this.#due.delete(counter)
    counter.dueMs = undefined
  }

  /**
   * Leaves the settlement of an evicted counter planned, so that its units are charged. If too many counters wait,
   * gives up its charges.
   */
  evicted(counter: WrittenCounter): void {
    if (!this.#isFull || counter.dueMs === undefined) return
    this.forget(counter)
    this.#giveUp(this.charges.take(counter))
  }

  /**
   * True if too many counters wait to be settled. The charges of evicted counters are then given up, so that an
   * outage does not fill the memory.
   */
  get #isFull(): boolean {
    return this.#due.size >= Math.max(this.#options.maxKeys, MOST_AT_ONCE)
  }

  #giveUp(charges: readonly Refund[]): void {
    for (const charge of charges) this.#givenUp.push(charge)
  }

  #reportGivenUp(why: string): void {
    this.#parts.charger.lose(this.#givenUp, new StoreUnavailableError(why))
    this.#givenUp = []
  }

  /** Begins to settle the counters that are due. */
  settleDue(nowMs: number): void {
    this.#reportGivenUp("More counters wait to be charged than maxKeys allows.")
    const due: WrittenCounter[] = []
    const { most } = this.replies
    for (const counter of this.#due) {
      if (due.length >= most || (counter.dueMs as number) > nowMs) break
      this.forget(counter)
      if (counter.isSettling) counter.isDueAgain = true
      else due.push(counter)
    }
    for (let i = 0; i < due.length; i += SETTLED_TOGETHER) this.#settle(due.slice(i, i + SETTLED_TOGETHER))
    const [next] = this.#due
    if (next !== undefined) this.#parts.sweep.plan(next.dueMs as number, nowMs)
  }

  #settle(counters: readonly WrittenCounter[]): void {
    if (counters.length > 0) this.#parts.inFlight.add(this.#settleTogether(counters))
  }

  async #settleTogether(counters: readonly WrittenCounter[]): Promise<void> {
    const sentMs = this.#nowMs()
    this.replies.began(counters.length, sentMs)
    for (const counter of counters) {
      counter.isSettling = true
      counter.isDueAgain = false
    }
    const isAnswered = await this.#isAnswered(counters, sentMs)
    this.replies.ended(counters.length, isAnswered, sentMs, this.#nowMs())
    for (const counter of counters) counter.isSettling = false
    if (this.#isClosing) return
    const again = counters.filter(({ isDueAgain, ended }) => isDueAgain && ended !== "reset")
    if (isAnswered) this.#settle(again)
    else for (const counter of again) this.plan(counter, this.#nowMs())
  }

  /** Charges the counters, and reads the shared counts. Returns whether the shared store responded. */
  async #isAnswered(counters: readonly WrittenCounter[], sentMs: number): Promise<boolean> {
    const counterOf = new Map<Refund, WrittenCounter>()
    for (const counter of counters) {
      for (const charge of this.charges.take(counter)) counterOf.set(charge, counter)
    }
    const keep = (charge: Refund): boolean => this.#keep(counterOf.get(charge) as WrittenCounter, charge)
    const unconfirmed = await this.#parts.charger.charge([...counterOf.keys()], keep, this.#failed)
    const isCharged = unconfirmed.length < counterOf.size
    // A server that did not reply to a charge would not reply with the count, either.
    const silent = new Set(this.replies.isSilent ? unconfirmed.map((charge) => counterOf.get(charge)) : [])
    const open = counters.filter((counter) => counter.ended === undefined && !silent.has(counter))
    const isLearned =
      open.length === 0 ||
      this.#isClosing ||
      (await this.#learn(open, () => isCharged || this.replies.wereSince(sentMs)))
    return isLearned && (isCharged || counterOf.size === 0)
  }

  readonly #failed = (error: unknown): void => this.replies.failed(error)

  /**
   * Plans to send a charge again that was not applied, if its units still count. Returns true if the charge will be
   * sent again.
   */
  #keep(counter: WrittenCounter, charge: Refund): boolean {
    const nowMs = this.#nowMs()
    if (counter.ended === "reset" || (counter.ended === "settled" && this.#isFull)) return false
    if (!isStillCounted(charge, counter.serverMs(nowMs))) return false
    this.#defer(counter, counter.stillInUse(charge, nowMs), nowMs)
    return true
  }

  /**
   * Reads the shared counts in one call. Returns true if any count was read. If the call fails, reads each count in a
   * separate call, because perhaps only one counter is unreadable or on a failing server. Makes no separate calls if
   * the store does not respond, because such calls would pile up. `isAlive` returns whether the store has replied to
   * another call meanwhile.
   */
  async #learn(counters: readonly WrittenCounter[], isAlive: () => boolean): Promise<boolean> {
    const sentMs = this.#nowMs()
    try {
      const checks = counters.map(({ policy, partition }) => ({ policy, partition, cost: 0, shadow: false }))
      const { nowMs: serverMs, counters: read } = await this.#parts.wrapped.read(checks, CHARGE_MS)
      const arrivedMs = this.#nowMs()
      for (const [i, counter] of counters.entries()) {
        const { state } = read[i] as CounterReading
        counter.settled({ state, serverMs, sentMs, arrivedMs })
        counter.refund(this.charges.of(counter), arrivedMs)
        this.aheadMs = counter.aheadMs
      }
      return true
    } catch (error) {
      this.#failed(error)
      if (counters.length === 1) return false
      if (storeErrorOf(error).kind === "timeout" && !isAlive()) return false
      const each = await Promise.all(counters.map((counter) => this.#learn([counter], isAlive)))
      return each.some(Boolean)
    }
  }

  /** Charges all pending units, after the calls in flight. Reports units as lost if it cannot send them in time. */
  async close(): Promise<void> {
    this.#isClosing = true
    const { charger, inFlight } = this.#parts
    const untilMs = performance.now() + BACKGROUND_REFUND_MS - 2 * CHARGE_MS
    do {
      await inFlight.settled()
      while (!this.charges.isEmpty && performance.now() < untilMs) {
        await charger.charge(this.charges.takeAll(MOST_IN_FLIGHT))
      }
      this.#giveUp(this.charges.takeAll())
    } while (!inFlight.isEmpty)
    this.#reportGivenUp("The store was closed before it had charged them.")
  }

  #nowMs(): number {
    return this.#options.clock.now()
  }
}
