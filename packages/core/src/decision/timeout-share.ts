import { StoreUnavailableError } from "../ground/errors.ts"
import { setTimer } from "../ground/time.ts"
import { RoundTrips } from "../stores/round-trips.ts"
import type { Store } from "../stores/store.ts"

const MINUTE_MS = 60_000
/** Fewer late decisions than this are not significant: an app that has just started may still be connecting. */
const FEWEST_LATE = 20
const SHARE = 0.05
/** How long to wait for late replies, in milliseconds. They show how far away the store is. */
const LATE_REPLIES_MS = 1_000
/** Replies that take longer than this usually come from a stall. They are used only if all replies are that slow. */
const LONGEST_ROUND_TRIP_MS = 1_000

/** The decisions of a minute that were made without the store because it did not answer in time. */
export interface Timeouts {
  /** All decisions of that minute so far. */
  readonly decisions: number
  /** Decisions degraded by a timeout, or by the circuit breaker that timeouts opened. */
  readonly late: number
  /** How long the store's last replies took; undefined if none was measured. */
  readonly roundTrip: { readonly medianMs: number; readonly most95Ms: number } | undefined
}

/**
 * Finds out whether the timeout is too short for the store. That is the case if timeouts degraded more than 5 % of a
 * minute's decisions, and at least 20.
 *
 * It reports once: as soon as replies show that the store is further away than the timeout allows, otherwise at the end
 * of the minute. A minute without any answer, not even a late one, is an outage and is not reported here.
 */
export class TimeoutShare {
  readonly #store: Store
  readonly #timeoutMs: number
  readonly #answers: () => number
  readonly #report: (timeouts: Timeouts) => void
  /** Replies that came too late, for a store that does not measure its replies. */
  readonly #lateReplies = new RoundTrips()
  /** Whether the last failure was a timeout, not counting failures of an open breaker: such failures opened it. */
  #isTimeout = false
  /** When the minute being counted began; undefined if there was no timeout. */
  #startedMs: number | undefined
  #answersBefore = 0
  #failures = 0
  #late = 0
  #timer: NodeJS.Timeout | undefined
  #isReported = false

  /** `answers` returns how many decisions the store has made so far. */
  constructor(store: Store, timeoutMs: number, answers: () => number, report: (timeouts: Timeouts) => void) {
    this.#store = store
    this.#timeoutMs = timeoutMs
    this.#answers = answers
    this.#report = report
  }

  /** Whether a minute is being counted, so that the caller has to call `passed`. */
  get isCounting(): boolean {
    return this.#startedMs !== undefined
  }

  /** Records a decision that was made without the store. */
  failed(error: unknown, nowMs: number): void {
    if (this.#isReported) return
    const kind = error instanceof StoreUnavailableError ? error.kind : "error"
    if (kind !== "unavailable") this.#isTimeout = kind === "timeout"
    this.passed(nowMs)
    if (this.#startedMs === undefined) {
      if (!this.#isTimeout) return
      this.#startedMs = nowMs
      this.#answersBefore = this.#answers()
    }
    this.#failures++
    if (!this.#isTimeout) return
    this.#late++
    if (!this.#areTooMany()) return
    if (this.#isFar(LONGEST_ROUND_TRIP_MS)) this.#tell()
    else this.#lookAgain()
  }

  /** Ends the minute when it is over. */
  passed(nowMs: number): void {
    if (this.#startedMs === undefined || nowMs < this.#startedMs + MINUTE_MS) return
    const hasAnswered = this.#answers() > this.#answersBefore
    if (this.#areTooMany() && (hasAnswered || this.#isFar())) this.#tell()
    this.#stop()
  }

  /** Measures the late answer of a store that does not measure its replies itself. */
  timeLate(answers: PromiseLike<unknown>, sentAtMs: number): void {
    if (this.#isReported || this.#store.recentRoundTripsMs !== undefined) return
    Promise.resolve(answers).then(
      () => this.#lateReplies.add(performance.now() - sentAtMs),
      () => undefined,
    )
  }

  get #decisions(): number {
    return this.#answers() - this.#answersBefore + this.#failures
  }

  #areTooMany(): boolean {
    return this.#late >= FEWEST_LATE && this.#late > SHARE * this.#decisions
  }

  /**
   * True if most replies take longer than the timeout. A median above `longestMs` is ignored, as it may come from a
   * stall.
   */
  #isFar(longestMs = Number.POSITIVE_INFINITY): boolean {
    const medianMs = this.#roundTrip()?.medianMs ?? 0
    return medianMs > this.#timeoutMs && medianMs <= longestMs
  }

  #roundTrip(): Timeouts["roundTrip"] {
    const measured = this.#store.recentRoundTripsMs ?? this.#lateReplies.recent
    const likely = measured.filter((ms) => ms <= LONGEST_ROUND_TRIP_MS)
    const sorted = [...(likely.length > 0 ? likely : measured)].sort((one, other) => one - other)
    if (sorted.length === 0) return undefined
    const nearest = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] as number
    return { medianMs: nearest(0.5), most95Ms: nearest(0.95) }
  }

  /**
   * Checks again after a delay. All calls may be pending at once, with no further call to notice their late replies.
   */
  #lookAgain(): void {
    this.#timer ??= setTimer(() => {
      if (this.#areTooMany() && this.#isFar(LONGEST_ROUND_TRIP_MS)) this.#tell()
    }, LATE_REPLIES_MS).unref()
  }

  #tell(): void {
    this.#isReported = true
    const timeouts = { decisions: this.#decisions, late: this.#late, roundTrip: this.#roundTrip() }
    this.#stop()
    this.#report(timeouts)
  }

  #stop(): void {
    this.#startedMs = undefined
    this.#failures = 0
    this.#late = 0
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
