import { StoreUnavailableError } from "../ground/errors.ts"
import { setTimer } from "../ground/time.ts"
import { RoundTrips } from "../stores/round-trips.ts"
import type { Store } from "../stores/store.ts"

const MINUTE_MS = 60_000
/** Fewer decisions than this say nothing: an app that has just started may still be connecting. */
const FEWEST_LATE = 20
const SHARE = 0.05
/** How long to wait for replies that are late, which show how far away the store is. */
const LATE_REPLIES_MS = 1_000
/** A reply that takes longer mostly comes from a stall, so it shows how far away the store is only if all are so slow. */
const LONGEST_ROUND_TRIP_MS = 1_000

/** Decisions of a minute that were made without the store because it did not answer in time. */
export interface Timeouts {
  /** All decisions of that minute, so far. */
  readonly decisions: number
  /** Those that a timeout degraded, or the circuit breaker that timeouts opened. */
  readonly late: number
  /** How long the store's last replies took; undefined where none was measured. */
  readonly roundTrip: { readonly medianMs: number; readonly most95Ms: number } | undefined
}

/**
 * Finds out whether the timeout is too short for the store: whether more than 5 % of a minute's decisions, and at least 20,
 * were degraded by timeouts. Reports it once: as soon as replies show that the store is further away than the timeout
 * allows, otherwise at the end of the minute. A minute in which the store answered nothing at all, not even too late, is an
 * outage, and is not reported here.
 */
export class TimeoutShare {
  readonly #store: Store
  readonly #timeoutMs: number
  readonly #answers: () => number
  readonly #report: (timeouts: Timeouts) => void
  /** Of a store that does not measure its replies: those that came too late. */
  readonly #lateReplies = new RoundTrips()
  /** Whether the last failure but those of an open breaker was a timeout: the breaker was opened by its like. */
  #isTimeout = false
  /** When the minute began that is being counted; undefined where there has been no timeout. */
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

  /** Whether a minute is being counted, so that `passed` has to be called. */
  get isCounting(): boolean {
    return this.#startedMs !== undefined
  }

  /** A decision was made without the store. */
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

  /** Measures the answer of a store that does not measure by itself, after the deadline has passed. */
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

  /** Whether most replies take longer than anybody waits. A median above `longestMs` may come from a stall. */
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

  /** All may have been asked at once, and nobody asks again when their replies come. */
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
