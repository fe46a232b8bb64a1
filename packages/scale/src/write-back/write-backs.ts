import { type Store, StoreUnavailableError } from "@sluice/core"
import {
  BACKGROUND_REFUND_MS,
  BoundedTable,
  type ChargeCounts,
  type Check,
  type CounterKey,
  countsByPart,
  type Refund,
  type StoreCondition,
  type StoreEvent,
  storeErrorOf,
} from "@sluice/core/stores"
import { CallsInFlight } from "../in-front/calls-in-flight.ts"
import { CHARGE_MS, Charger } from "../in-front/charger.ts"
import { Charges, isStillCounted } from "../in-front/charges.ts"
import { Sweep } from "../in-front/sweep.ts"
import { askForCounts } from "./ask-for-counts.ts"
import type { ParsedWriteBackOptions } from "./options.ts"
import type { OwnChecks } from "./own-checks.ts"
import { WrittenCounter } from "./written-counter.ts"

/** Number of counters that are settled together. If the shared store answers for none of them, that is one failure. */
const SETTLED_TOGETHER = 64
/** Most counters whose settling begins at once, because each takes about 10 us. */
const MOST_AT_ONCE = 1_024
/** Most counters that are being settled. A store that does not answer must not collect more calls than this. */
const MOST_IN_FLIGHT = 4 * MOST_AT_ONCE
/** Number of settlings in a row that fail before answers say that they were decided without the shared counts. */
const FAILURES_UNTIL_DEGRADED = 3
/** Settlings may wait this long for an answer before answers say so. Longer than a charge may take, to give its error. */
const SILENT_UNTIL_DEGRADED_MS = CHARGE_MS + 200

const CONFIRMED: StoreCondition = {}
const FAILING: StoreCondition = { isRemembered: true }
const DEGRADED: StoreCondition = { isRemembered: true, isDegraded: true }

/** The counters of a store that writes back. Settles them: charges their units, and then asks for the shared counts. */
export class WriteBacks {
  /** Units that are not charged yet. */
  readonly charges = new Charges()
  readonly inFlight = new CallsInFlight()
  readonly #store: Store
  readonly #options: ParsedWriteBackOptions
  readonly #table: BoundedTable<WrittenCounter>
  /** Counters to settle. All wait equally long, so the first one is always due first. */
  readonly #due = new Set<WrittenCounter>()
  readonly #sweep: Sweep
  readonly #charger: Charger
  #isClosing = false
  #aheadMs = 0
  #failures = 0
  #failedMs = Number.NEGATIVE_INFINITY
  /** Number of counters that are being settled. */
  #settlingCounters = 0
  /** Number of settlings in flight, and since when there have been some without an answer. Pauses do not count. */
  #settling = 0
  #silentSinceMs = 0
  #silentMs = 0
  /** With the last error, as long as the shared store fails. */
  #degraded: StoreCondition = DEGRADED
  /** True if the last settling that failed got no reply at all. */
  #isSilent = false
  /** Charges that were given up, because too many counters wait. The next sweep reports them as lost. */
  #givenUp: Refund[] = []

  constructor(store: Store, options: ParsedWriteBackOptions, onLost: (event: StoreEvent) => void) {
    this.#store = store
    this.#options = options
    this.#table = new BoundedTable(options.maxKeys)
    this.#charger = new Charger(store, options.clock, { to: "", title: "The shared store" }, onLost)
    this.#sweep = new Sweep(options.clock, options.settleMs / 10, (nowMs) => this.#settleDue(nowMs))
  }

  get counts(): ChargeCounts {
    return this.#charger.counts
  }

  get condition(): StoreCondition {
    const silentMs = this.#settling > 0 ? this.nowMs() - this.#silentSinceMs : this.#silentMs
    if (silentMs >= SILENT_UNTIL_DEGRADED_MS || this.#failures >= FAILURES_UNTIL_DEGRADED)
      return this.#degraded
    return this.#failures === 0 ? CONFIRMED : FAILING
  }

  /** The monotonic time of this process. */
  nowMs(): number {
    return this.#options.clock.now()
  }

  /** Returns the counters of the checks that this process decides, undefined for those of the shared store. */
  of(checks: readonly Check[], nowMs: number): readonly (WrittenCounter | undefined)[] {
    return checks.map((check, i) => {
      if (!isWritable(checks, i)) return undefined
      const counter = this.#find(check) ?? this.#open(check, nowMs)
      counter?.ask(check, nowMs)
      if (counter !== undefined) this.plan(counter, nowMs)
      return counter
    })
  }

  /** Returns counters that can answer a peek. Once everything is settled, the shared store is asked. */
  active(checks: readonly Check[]): readonly (WrittenCounter | undefined)[] {
    return checks.map((check, i) => {
      const counter = isWritable(checks, i) ? this.#find(check) : undefined
      return counter?.isActive === true || this.#failures > 0 ? counter : undefined
    })
  }

  /** Settles the counter after `settleMs`, unless that is planned already. */
  plan(counter: WrittenCounter, nowMs: number): void {
    if (counter.dueMs !== undefined || this.#isClosing) return
    counter.dueMs = nowMs + this.#options.settleMs
    this.#due.add(counter)
    this.#sweep.plan(counter.dueMs, nowMs)
  }

  /** Takes a refund or a charge. Returns false if the shared store must apply it. */
  refund(refund: Refund): boolean {
    const counter = this.#find(refund)
    if (counter === undefined) {
      // The counter was evicted. A refund must not overtake the charge of its units.
      if (this.charges.of(refund).length === 0) return false
      this.charges.add(refund, -refund.units, refund.after)
      return true
    }
    this.#apply(counter, refund)
    return true
  }

  /** Returns the units of a request that was not granted. A reset has deleted them already. */
  putBack(own: OwnChecks): void {
    for (const [counter, refund] of own.taken) if (counter.ended !== "reset") this.#apply(counter, refund)
  }

  /** Forgets counters that are reset. Returns the charges that were not sent. */
  drop(keys: readonly CounterKey[]): readonly Refund[] {
    return keys.flatMap((key) => {
      const counter = this.#find(key)
      if (counter !== undefined) {
        this.#end(counter, "reset")
        this.#due.delete(counter)
        counter.dueMs = undefined
      }
      return this.charges.take(key)
    })
  }

  /** Takes charges back that were dropped for a reset that failed. */
  restore(dropped: readonly Refund[]): void {
    for (const charge of dropped) {
      const counter = this.#find(charge) ?? this.#open(charge, this.nowMs())
      if (counter !== undefined) this.#apply(counter, charge)
    }
  }

  /** Charges everything that is pending, after the calls in flight. Reports as lost what it cannot send in time. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#sweep.stop()
    const untilMs = performance.now() + BACKGROUND_REFUND_MS - 2 * CHARGE_MS
    do {
      await this.inFlight.settled()
      while (!this.charges.isEmpty && performance.now() < untilMs) {
        await this.#charger.charge(this.charges.takeAll(MOST_IN_FLIGHT))
      }
      this.#giveUp(this.charges.takeAll())
    } while (!this.inFlight.isEmpty)
    this.#reportGivenUp("The store was closed before it had charged them.")
  }

  #find({ policy, partition }: CounterKey): WrittenCounter | undefined {
    return this.#table.find(policy.counter, partition)
  }

  #open(key: CounterKey, nowMs: number): WrittenCounter | undefined {
    const { rules, instances } = this.#options
    if (!rules(key.policy.name)) return undefined
    // Forget counters that no longer have an effect faster than new ones come.
    for (let i = 0; i < 2; i++) {
      const other = this.#table.next()
      if (other?.isIdle(nowMs) === true) this.#end(other, "evicted")
    }
    const counter = new WrittenCounter(
      key,
      { instances, aheadMs: this.#aheadMs },
      this.charges.of(key),
      nowMs,
    )
    const evicted = this.#table.add(counter)
    if (evicted !== undefined) {
      evicted.ended = "evicted"
      // Its units are still charged when it is due.
      if (this.#isFull && this.#due.delete(evicted)) {
        evicted.dueMs = undefined
        this.#giveUp(this.charges.take(evicted))
      }
    }
    return counter
  }

  /** True if evicted counters are given up, because too many wait to be settled. An outage must not fill the memory. */
  get #isFull(): boolean {
    return this.#due.size >= Math.max(this.#options.maxKeys, MOST_AT_ONCE)
  }

  #giveUp(charges: readonly Refund[]): void {
    for (const charge of charges) this.#givenUp.push(charge)
  }

  #reportGivenUp(why: string): void {
    this.#charger.lose(this.#givenUp, new StoreUnavailableError(why))
    this.#givenUp = []
  }

  #end(counter: WrittenCounter, how: "evicted" | "reset"): void {
    this.#table.delete(counter)
    counter.ended = how
  }

  /** Applies a refund or a charge to the counter now, and to the shared counter later. */
  #apply(counter: WrittenCounter, refund: Refund): void {
    const nowMs = this.nowMs()
    counter.refund([refund], nowMs)
    this.#defer(counter, refund, nowMs)
  }

  #defer(counter: WrittenCounter, { units, after }: Refund, nowMs: number): void {
    this.charges.add(counter, -units, after)
    this.plan(counter, nowMs)
  }

  #settleDue(nowMs: number): void {
    this.#reportGivenUp("More counters wait to be charged than maxKeys allows.")
    const due: WrittenCounter[] = []
    const most = this.#mostDue
    for (const counter of this.#due) {
      if (due.length >= most || (counter.dueMs as number) > nowMs) break
      this.#due.delete(counter)
      counter.dueMs = undefined
      if (counter.isSettling) counter.isDueAgain = true
      else due.push(counter)
    }
    for (let i = 0; i < due.length; i += SETTLED_TOGETHER) {
      this.inFlight.add(this.#settle(due.slice(i, i + SETTLED_TOGETHER)))
    }
    const [next] = this.#due
    if (next !== undefined) this.#sweep.plan(next.dueMs as number, nowMs)
  }

  /** Number of counters whose settling may begin now. While the shared store fails, few are tried. */
  get #mostDue(): number {
    if (this.#failures === 0) return Math.min(MOST_AT_ONCE, MOST_IN_FLIGHT - this.#settlingCounters)
    if (this.#settling > 0) return 0
    // The units of a charge without a reply are lost, so a single counter tries.
    return this.#isSilent ? 1 : SETTLED_TOGETHER
  }

  async #settle(counters: readonly WrittenCounter[]): Promise<void> {
    const sentMs = this.nowMs()
    this.#settlingCounters += counters.length
    if (this.#settling++ === 0) this.#silentSinceMs = sentMs - this.#silentMs
    const charges = new Map<Refund, WrittenCounter>()
    for (const counter of counters) {
      counter.isSettling = true
      counter.isDueAgain = false
      for (const charge of this.charges.take(counter)) charges.set(charge, counter)
    }
    const keep = (charge: Refund) => this.#keep(charges.get(charge) as WrittenCounter, charge)
    const unconfirmed = await this.#charger.charge([...charges.keys()], keep, this.#failed)
    const isCharged = unconfirmed.length < charges.size
    let isAnswered = isCharged || charges.size === 0
    // A server that did not reply to a charge would not reply with the count, either.
    const silent = new Set(this.#isSilent ? unconfirmed.map((charge) => charges.get(charge)) : [])
    const open = counters.filter((counter) => counter.ended === undefined && !silent.has(counter))
    if (open.length > 0 && !this.#isClosing) {
      const isAlive = () => isCharged || this.#silentSinceMs > sentMs
      isAnswered = (await this.#learn(open, isAlive)) && isAnswered
    }
    this.#settlingCounters -= counters.length
    this.#answered(isAnswered, sentMs)
    const again: WrittenCounter[] = []
    for (const counter of counters) {
      counter.isSettling = false
      if (!counter.isDueAgain || counter.ended === "reset" || this.#isClosing) continue
      if (isAnswered) again.push(counter)
      else this.plan(counter, this.nowMs())
    }
    if (again.length > 0) this.inFlight.add(this.#settle(again))
  }

  /** Keeps a charge that was not applied, if it is still of use. */
  #keep(counter: WrittenCounter, charge: Refund): boolean {
    const nowMs = this.nowMs()
    if (counter.ended === "reset") return false
    if (!isStillCounted(charge, counter.serverMs(nowMs))) return false
    if (counter.ended === "evicted" && this.#isFull) return false
    this.#defer(counter, counter.stillInUse(charge, nowMs), nowMs)
    return true
  }

  /** Asks for the shared counts. Returns whether any of them came. */
  #learn(counters: readonly WrittenCounter[], isAlive: () => boolean): Promise<boolean> {
    return askForCounts(
      this.#store,
      counters,
      { nowMs: () => this.nowMs(), failed: this.#failed, isAlive },
      (counter, seen) => {
        counter.settled(seen, this.charges.of(counter), seen.arrivedMs)
        this.#aheadMs = counter.aheadMs
      },
    )
  }

  readonly #failed = (error: unknown): void => {
    const { message, kind } = storeErrorOf(error)
    this.#isSilent = kind === "timeout"
    const text = `The store decided without the shared counters: ${message}`
    if (this.#degraded.failure?.message === text) return
    const failure = new StoreUnavailableError(text, { kind: "unavailable", cause: error })
    this.#degraded = { ...DEGRADED, failure }
  }

  #answered(isAnswered: boolean, sentMs: number): void {
    this.#settling--
    const nowMs = this.nowMs()
    if (isAnswered) this.#silentSinceMs = nowMs
    this.#silentMs = nowMs - this.#silentSinceMs
    if (isAnswered) this.#failures = 0
    // Settlings that were in flight together fail together, which is one failure.
    else if (this.#failures === 0 || sentMs >= this.#failedMs + this.#options.settleMs) {
      this.#failures++
      this.#failedMs = sentMs
    }
  }
}

/** Whether a check may be written back. The store has to see refusals that count, also those of the next check. */
function isWritable(checks: readonly Check[], i: number): boolean {
  const { policy } = checks[i] as Check
  return (
    policy.countRejected !== true && countsByPart(policy) && checks[i + 1]?.policy.algorithm !== "penalty"
  )
}
