import { type Clock, soundTime } from "../../ground/clock.ts"
import type { StoreUnavailableError } from "../../ground/errors.ts"
import type { Policy } from "../../ground/policy.ts"
import { after, outsideRequests, setTimer } from "../../ground/time.ts"
import { BACKGROUND_REFUND_MS, type Refund, type Store } from "../../stores/store.ts"
import { isNotApplied, storeErrorOf } from "../../stores/store-error.ts"
import type { HeldPermits } from "./held-permits.ts"
import type { Holding } from "./holding.ts"

/** The earliest share of a window after which a process renews, and by how much this share differs between processes. */
const EARLIEST = 0.1
const SPREAD = 0.2
/** The share of a window after which a failed renewal is tried again, and the share up to which it is tried. */
const RETRY_AFTER = 0.125
const LATEST = 0.9
/** Most renewals with an unknown outcome in one window. Each may leave additional permits counted. */
const MOST_UNKNOWNS = 2
/** Number of counters that one call renews, so that the call does not block other clients of the store. */
const MOST_AT_ONCE = 64
/** Pause between two calls, in milliseconds, and the share of the window that all pauses take at most. */
const PAUSE_MS = 5
const MOST_PAUSES = 0.2
/** Interval between two reports of lost permits of a rule, in milliseconds. */
const REPORT_EVERY_MS = 1_000

/** Receives the name of a rule, the number of its permits that ended too early, and why they were not renewed. */
export type OnPermitsLost = (
  policy: string,
  permits: number,
  error: StoreUnavailableError | undefined,
) => void

/** The dependencies of a renewer. */
export interface RenewerOptions {
  readonly store: Store
  readonly clock: Clock
  /** Called for permits that ended although their requests were in progress. */
  readonly onPermitsLost: OnPermitsLost
}

/** The permits of one rule that this process has renewed and lost. */
interface Past {
  renewed: number
  lost: number
  /** How many lost permits were reported, and when the latest were. */
  reported: number
  reportedAtMs: number
}

/**
 * Renews permits once in each window. One entry stands for all permits of a counter that have the same window. A process
 * renews at a fixed point between 10 % and 30 % of a window, drawn at random, so that processes renew at different
 * times. A failed renewal is tried again every eighth of the window until 90 % of it has passed.
 *
 * So a process that is frozen or cut off for less than 0.35 of `hold` (0.7 windows) loses no permits. A message that is
 * lost never frees a permit. It keeps at most its own permits counted, for at most two windows.
 */
export class Renewer {
  /** The permits of each rule that were renewed or lost, by the rule's name. */
  readonly past: Map<string, Past> = new Map()
  readonly #held: HeldPermits
  readonly #options: RenewerOptions
  readonly #point = EARLIEST + SPREAD * Math.random()
  /** The functions that cancel the next renewals, by the length of the window. */
  readonly #timers = new Map<number, () => void>()
  /** By how much the store's clock is ahead of this process's clock, in milliseconds. */
  #aheadMs = 0
  #error: StoreUnavailableError | undefined
  #isClosed = false

  constructor(held: HeldPermits, options: RenewerOptions) {
    this.#held = held
    this.#options = options
  }

  /**
   * Renews the permits of a policy from now on. `localMs` is the current time of this process's clock.
   * `storeMs` is the time of the decision by the store's clock, if the store has decided. It is a lower bound of the
   * store's current time, because the reply took some time to arrive.
   */
  watch({ name, windowMs }: Policy, localMs: number, storeMs: number | undefined): void {
    if (storeMs !== undefined) this.#aheadMs = storeMs - localMs
    this.#pastOf(name)
    if (!this.#timers.has(windowMs)) this.#scheduleNext(windowMs)
  }

  close(): void {
    this.#isClosed = true
    for (const cancel of this.#timers.values()) cancel()
  }

  /** A lower bound of the store's time, so that no permit is believed to be in a later window than it is. */
  get storeMs(): number {
    return Math.floor(soundTime(this.#options.clock) + this.#aheadMs)
  }

  /** Schedules the renewals of the next window. */
  #scheduleNext(windowMs: number): void {
    this.#schedule(windowMs, windowMs - (this.storeMs % windowMs) + this.#point * windowMs)
  }

  #schedule(windowMs: number, inMs: number): void {
    if (this.#isClosed) return
    this.#timers.get(windowMs)?.()
    const renew = (): void => this.#renew(windowMs)
    // A timer replaces a clock that cannot wait.
    const failed = (): void => void setTimer(renew, inMs).unref()
    const { clock } = this.#options
    this.#timers.set(
      windowMs,
      outsideRequests(() => after(inMs, clock, renew, failed)),
    )
  }

  /** Renews the permits that are counted in earlier windows. Ends when there are no permits. */
  #renew(windowMs: number): void {
    if (this.#isClosed) return
    this.#timers.delete(windowMs)
    const current = this.#startMs(windowMs)
    const due = new Map<string, Holding[]>()
    let isNeeded = false
    for (const holding of this.#held) {
      if (holding.policy.windowMs !== windowMs) continue
      if (isDropped(holding)) {
        this.#held.delete(holding)
        continue
      }
      isNeeded = true
      if (!isDue(holding, current)) continue
      const { policy, partition, startMs } = holding
      const key = `${policy.counter}${startMs} ${partition}`
      const together = due.get(key)
      if (together === undefined) due.set(key, [holding])
      else together.push(holding)
    }
    if (!isNeeded) return
    this.#scheduleNext(windowMs)
    this.#reportLost([...due.values()].flat(), current)
    this.#sendAll([...due.values()], windowMs)
  }

  #sendAll(groups: readonly (readonly Holding[])[], windowMs: number): void {
    const calls = Math.ceil(groups.length / MOST_AT_ONCE)
    const pauseMs = Math.min(PAUSE_MS, (MOST_PAUSES * windowMs) / calls)
    for (let i = 0; i < calls; i++) {
      const some = groups.slice(i * MOST_AT_ONCE, (i + 1) * MOST_AT_ONCE)
      if (i === 0) this.#send(some, windowMs)
      else after(i * pauseMs, this.#options.clock, () => this.#send(some, windowMs))
    }
  }

  #send(groups: readonly (readonly Holding[])[], windowMs: number): void {
    // Some permits may have been released during the pause.
    const sent = groups.map((group) => group.filter((each) => this.#held.has(each)))
    const holdings = sent.flat()
    if (holdings.length === 0 || this.#isClosed) return
    const refunds = sent.flatMap((group) => (group[0] === undefined ? [] : [renewalOf(group[0], group)]))
    const renewal = this.#call(refunds, holdings, windowMs)
    for (const holding of holdings) holding.renewal = renewal
  }

  /** Never rejects. */
  async #call(refunds: readonly Refund[], holdings: readonly Holding[], windowMs: number): Promise<void> {
    const startMs = this.#startMs(windowMs)
    try {
      // The renewal must be in flight when this function returns, even if the store throws immediately.
      await Promise.resolve()
      await this.#options.store.refund(refunds, BACKGROUND_REFUND_MS)
      this.#error = undefined
      for (const holding of holdings) this.#renewed(holding, startMs)
    } catch (error) {
      this.#failed(error, holdings, windowMs)
    }
    for (const holding of holdings) {
      holding.renewal = undefined
      if (!(holding.owner instanceof WeakRef)) holding.owner = new WeakRef(holding.owner)
    }
  }

  #renewed(holding: Holding, startMs: number): void {
    holding.startMs = startMs
    holding.isLossCounted = false
    this.#pastOf(holding.policy.name).renewed += holding.permits
  }

  #failed(error: unknown, holdings: readonly Holding[], windowMs: number): void {
    this.#error = storeErrorOf(error)
    const start = this.#startMs(windowMs)
    if (!isNotApplied(error)) {
      for (const holding of holdings) {
        const { unknowns } = holding
        holding.unknowns = { windowMs: start, times: 1 + (unknowns?.windowMs === start ? unknowns.times : 0) }
      }
    }
    const share = (this.storeMs - start) / windowMs
    if (share + RETRY_AFTER <= LATEST) this.#schedule(windowMs, RETRY_AFTER * windowMs)
  }

  /** Counts the permits whose windows have ended, and reports them. A renewal counts them again in the store. */
  #reportLost(due: readonly Holding[], currentMs: number): void {
    for (const holding of due) {
      const { policy, permits, startMs = currentMs, isLossCounted } = holding
      if (isLossCounted === true || startMs >= currentMs - policy.windowMs) continue
      holding.isLossCounted = true
      this.#pastOf(policy.name).lost += permits
    }
    const nowMs = this.storeMs
    for (const [name, past] of this.past) {
      const permits = past.lost - past.reported
      if (permits === 0 || Math.abs(nowMs - past.reportedAtMs) < REPORT_EVERY_MS) continue
      past.reported = past.lost
      past.reportedAtMs = nowMs
      this.#options.onPermitsLost(name, permits, this.#error)
    }
  }

  #pastOf(name: string): Past {
    const past = this.past.get(name) ?? {
      renewed: 0,
      lost: 0,
      reported: 0,
      reportedAtMs: Number.NEGATIVE_INFINITY,
    }
    this.past.set(name, past)
    return past
  }

  /** Start of the window that contains the lower bound of the store's time. */
  #startMs(windowMs: number): number {
    const nowMs = this.storeMs
    return nowMs - (nowMs % windowMs)
  }
}

/** True if code has dropped the decision without releasing it. */
function isDropped({ owner }: Holding): boolean {
  return owner instanceof WeakRef && owner.deref() === undefined
}

/** Whether permits are counted in an earlier window and may be renewed now. */
function isDue(holding: Holding, currentMs: number): boolean {
  const { startMs, renewal, unknowns } = holding
  if (renewal !== undefined) return false
  if (unknowns?.windowMs === currentMs && unknowns.times >= MOST_UNKNOWNS) return false
  const { windowMs } = holding.policy
  // If the clock went back by more than a window, the store has moved the permits to an earlier window, which may have
  // ended since. So the renewal counts them again, as it does for permits that were taken without the store.
  if (startMs !== undefined && startMs > currentMs + windowMs) holding.startMs = undefined
  return holding.startMs === undefined || holding.startMs < currentMs
}

/** Returns the entry that renews all permits of a counter and window. */
function renewalOf({ policy, partition, startMs = 0 }: Holding, group: readonly Holding[]): Refund {
  const permits = group.reduce((sum, holding) => sum + holding.permits, 0)
  return { policy, partition, units: -permits, after: { startMs, current: 0, previous: 0 } }
}
