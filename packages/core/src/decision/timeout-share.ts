import { StoreUnavailableError } from "../ground/errors.ts"
import { setTimer } from "../ground/time.ts"
import { OUTAGE_MS } from "../stores/round-trips.ts"
import type { Store } from "../stores/store.ts"

const MINUTE_MS = 60_000
/** Fewer late decisions than this are not significant, because an app that has just started may still be connecting. */
const FEWEST_LATE = 20
const SHARE = 0.05
/** How long to wait for late replies, in milliseconds. Late replies show how slow the store is. */
const LATE_REPLIES_MS = 1_000
/** The fewest short silences that indicate a slow store. At the end of an outage, a few replies may be slow as well. */
const FEWEST_SLOW = 3

/**
 * The decisions of a minute, including the decisions that were made without the store because it did not respond in
 * time.
 */
export interface Timeouts {
  /** All decisions of that minute so far. */
  readonly decisions: number
  /** Decisions degraded by a timeout, or by the circuit breaker that timeouts opened. */
  readonly late: number
  /** The duration of the store's latest round trips. Undefined if no round trip was measured. */
  readonly roundTrip: { readonly medianMs: number; readonly most95Ms: number } | undefined
}

/**
 * Detects whether the timeout is too short for the store. The timeout is too short if it degraded more than 5 % of a
 * minute's decisions, and at least 20 decisions, while the store replied too late.
 *
 * Reports once, either as soon as most replies take longer than the timeout, or at the end of the minute. Outages are
 * not reported here, because a longer timeout does not help in an outage. An outage is a silence of more than a
 * second, or a silence that ends without late replies.
 */
export class TimeoutShare {
  readonly #store: Store
  readonly #timeoutMs: number
  readonly #answers: () => number
  readonly #report: (timeouts: Timeouts) => void
  /**
   * Whether the latest failure was a timeout. Failures because of an open circuit breaker are ignored, so that they
   * count like the failures that opened the breaker.
   */
  #isTimeout = false
  /** When the minute that is being counted began. Undefined if no timeout has occurred. */
  #startedMs: number | undefined
  #answersBefore = 0
  #failures = 0
  #late = 0
  /**
   * When the current silence began, and the number of late decisions since. Undefined if the store has responded
   * since the latest late decision.
   */
  #silence: { readonly sinceMs: number; late: number } | undefined
  /** Number of short silences in the current minute that ended with late replies. */
  #slow = 0
  /** When a late decision last caused a check of the replies. */
  #lookedMs = Number.NEGATIVE_INFINITY
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
    this.#endMinute(nowMs)
    if (this.#startedMs === undefined) {
      if (!this.#isTimeout) return
      this.#startedMs = nowMs
      this.#answersBefore = this.#answers()
    }
    this.#failures++
    if (!this.#isTimeout) return
    this.#late++
    this.#silence ??= { sinceMs: nowMs, late: 0 }
    this.#silence.late++
    // Check the replies at most once a second, because sorting them for each late decision would take twenty times as
    // long as the decision itself.
    if (!this.#areTooMany() || nowMs < this.#lookedMs + LATE_REPLIES_MS) return
    this.#lookedMs = nowMs
    if (this.#isFar()) this.#tell()
    else this.#lookAgain()
  }

  /** Records that the store has responded in time. */
  passed(nowMs: number): void {
    this.#endSilence(nowMs)
    this.#endMinute(nowMs)
  }

  #endSilence(nowMs: number): void {
    if (this.#silence === undefined) return
    const { sinceMs, late } = this.#silence
    this.#silence = undefined
    if (nowMs - sinceMs > OUTAGE_MS) {
      this.#failures -= late
      this.#late -= late
    } else if (this.#replies().some((ms) => ms > this.#timeoutMs)) this.#slow++
  }

  #endMinute(nowMs: number): void {
    if (this.#startedMs === undefined || nowMs < this.#startedMs + MINUTE_MS) return
    this.#endSilence(nowMs)
    if (this.#areTooMany() && (this.#isFar() || this.#slow >= FEWEST_SLOW)) this.#tell()
    this.#stop()
  }

  get #decisions(): number {
    return this.#answers() - this.#answersBefore + this.#failures
  }

  #areTooMany(): boolean {
    return this.#late >= FEWEST_LATE && this.#late > SHARE * this.#decisions
  }

  /**
   * True if most replies take longer than the timeout. Requires several replies, because the first replies after an
   * outage may be slow.
   */
  #isFar(fewest = FEWEST_SLOW): boolean {
    return this.#replies().length >= fewest && (this.#roundTrip()?.medianMs ?? 0) > this.#timeoutMs
  }

  /** Returns the durations of the latest round trips, without the replies that arrived after an outage. */
  #replies(): number[] {
    return (this.#store.status?.recentRoundTripsMs ?? []).filter((ms) => ms <= OUTAGE_MS)
  }

  #roundTrip(): Timeouts["roundTrip"] {
    const sorted = this.#replies().sort((one, other) => one - other)
    if (sorted.length === 0) return undefined
    const nearest = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] as number
    return { medianMs: nearest(0.5), most95Ms: nearest(0.95) }
  }

  /**
   * Checks again after a delay. All calls may be pending at the same time, and then no further call would detect
   * their late replies.
   */
  #lookAgain(): void {
    this.#timer ??= setTimer(() => {
      if (this.#areTooMany() && this.#isFar(1)) this.#tell()
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
    this.#slow = 0
    this.#silence = undefined
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
