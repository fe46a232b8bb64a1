import { durationText } from "./duration.ts"
import type { PaceEvents } from "./events.ts"
import type { GateMode, GateStatus } from "./gate-status.ts"
import { CallLine } from "./line.ts"
import { LONGEST_BACKOFF_MS, type ParsedPacedOptions } from "./options.ts"
import { OwnCeiling } from "./own-ceiling.ts"
import { PaceError } from "./pace-error.ts"
import type { Reading } from "./reading.ts"
import type { ResponseLimits } from "./response-limits.ts"
import { backoffMs, RetryBudget } from "./retries.ts"
import { LONGEST_TIMER_MS, type PacedCall, throwIfAborted } from "./watch.ts"

/**
 * A block is lengthened by up to this share of its first hour, so that clients with the same wait do not return in the
 * same millisecond.
 */
const [JITTER, JITTERED_MS] = [0.25, 3_600_000]
/** The minimum length of a block, so that a server that reports "0 left, for 0 s" is not called in a loop. */
const SHORTEST_BLOCK_MS = 50
/** The interval between two calls varies by up to this share around its average. */
const INTERVAL_SHARE = 0.25
/**
 * The time that other calls wait for the response to learn from, and the time in which the number of calls in flight
 * then doubles.
 */
const [EXCLUSIVE_MS, DOUBLING_MS] = [1_000, 100]

/** The settings of a gate. */
export interface GateSettings
  extends Pick<ParsedPacedOptions, "maxWaiting" | "limit" | "retryBudget" | "backoffMs"> {
  readonly emit: <Name extends keyof PaceEvents>(name: Name, event: PaceEvents[Name]) => void
}

/**
 * The calls of one key. From the responses, the gate decides when the first call in line may leave. Times come from
 * `performance.now()`, which never goes back.
 */
export class Gate {
  /**
   * The number of the last call that was sent. All gates share this counter, because a redirected response may belong
   * to a call of another gate.
   */
  static #lastSent = 0
  readonly key: string
  readonly #settings: GateSettings
  readonly #line = new CallLine()
  readonly #ceiling: OwnCeiling | undefined
  #mode: GateMode = "learning"
  #dialect: string | undefined
  #readings: readonly Reading[] = []
  #readAtMs = 0
  /** The highest number of remaining units so far. It replaces the quota if the responses contain no quota. */
  #mostRemaining = 0
  /** The number of the last call whose response was read. */
  #newest = 0
  /**
   * The number of the last call that was sent before learning began. Responses to calls up to this number do not end
   * the learning.
   */
  #sentBefore = 0
  #inFlight = 0
  /**
   * The number of calls in flight that were sent since learning began, and the time when the first of these calls was
   * sent.
   */
  #inFlightSince = 0
  #askedAtMs = 0
  #lastSentAtMs = Number.NEGATIVE_INFINITY
  #intervalShare = 1
  #blockedUntilMs = 0
  #jitter = 0
  /** The number of backoffs after refusals without a wait, since the last call that was not refused. */
  #backoffs = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly budget: RetryBudget
  /** The problem in the body of the last refusal. */
  detail: string | undefined
  /** The time when a call last used this gate. */
  usedAtMs = 0

  constructor(key: string, settings: GateSettings) {
    this.key = key
    this.#settings = settings
    const { limit, retryBudget } = settings
    this.budget = new RetryBudget(retryBudget)
    this.#ceiling = limit && new OwnCeiling(limit.limit, limit.windowMs)
  }

  /**
   * Resolves with the number of the call once it may be sent. Rejects with the reason of a signal, or with
   * {@link PaceError} if the call would wait too long or the line is full.
   */
  async enter(call: PacedCall): Promise<number> {
    throwIfAborted(call)
    const nowMs = performance.now()
    if (this.#line.length === 0 && this.#waitMs(nowMs) === 0) return this.#send(nowMs)
    const error = this.whyNot(call)
    if (error !== undefined) throw error
    const joined = this.#line.join(
      call,
      () => this.tooLong(call),
      // Run later, because `close()` removes all calls from the line in the same turn.
      () => queueMicrotask(() => this.#run()),
    )
    this.#settings.emit("wait", this.status())
    this.#run()
    return joined
  }

  /** Returns the reason why a call cannot wait in this line; undefined if the call can wait. */
  whyNot(call: PacedCall): PaceError | undefined {
    const waitMs = this.#leastWaitOf(call)
    if (call.waitLeftMs < Math.max(waitMs, 1)) return this.tooLong(call)
    if (this.#line.length < this.#settings.maxWaiting) return undefined
    const message = `${this.#line.length} calls of ${this.key} already wait. Send fewer calls, or raise "maxWaiting".`
    return this.#error("SLUICE_PACE_LINE_FULL", message, waitMs)
  }

  /** Returns the error of a call that would wait too long, or has waited too long. */
  tooLong(call: PacedCall): PaceError {
    const waitMs = this.#leastWaitOf(call)
    const until = waitMs > 0 ? `; it may leave in ${durationText(waitMs)}` : ""
    const message = `A call of ${this.key} would wait longer than ${call.maxWaitMs} ms${until}. Try again later, or raise "maxWaitMs".`
    return this.#error("SLUICE_PACE_WAIT_TOO_LONG", message, waitMs)
  }

  /** Ends the call with this number, and then calls {@link heard} does. */
  answered(sent: number, limits: ResponseLimits): number | undefined {
    this.#ended(sent)
    return this.heard(sent, limits)
  }

  /**
   * Applies the head of a response to the call with this number, which may belong to another gate. Returns the wait
   * after a refusal; undefined if calls need not wait.
   */
  heard(sent: number, limits: ResponseLimits): number | undefined {
    const waitMs = limits.isRefused ? (limits.waitMs ?? this.#backoff(sent)) : undefined
    if (waitMs !== undefined) this.blockFor(waitMs)
    else {
      if (!limits.isRefused) this.#learn(sent, limits)
      this.#run()
    }
    return waitMs
  }

  /** Ends the call with this number, which got no response. */
  failed(sent: number): void {
    this.#ended(sent)
    this.#run()
  }

  /** Blocks all calls for some milliseconds. After that, one call leaves, to learn from its response. */
  blockFor(ms: number): void {
    this.#block(performance.now() + Math.max(ms, SHORTEST_BLOCK_MS))
    this.#run()
  }

  status(): GateStatus {
    const scarcest = this.#scarcest()
    return {
      key: this.key,
      mode: this.#mode,
      dialect: this.#dialect,
      waiting: this.#line.length,
      inFlight: this.#inFlight,
      remaining: scarcest?.remaining,
      quota: scarcest?.quota,
      blockedForMs: Math.max(0, this.#blockedUntilMs - performance.now()),
    }
  }

  /** Whether calls wait or are in flight. */
  get isUsed(): boolean {
    return this.#inFlight > 0 || this.#line.length > 0
  }

  /** True if the gate can be removed, because a new gate would learn the same state from its first response. */
  isIdle(nowMs: number): boolean {
    const longestMs = Math.max(0, ...this.#readings.map(({ forMs }) => forMs))
    const isForgotten = nowMs >= this.#blockedUntilMs && nowMs >= this.#readAtMs + longestMs
    return isForgotten && this.#ceiling?.isEmpty(nowMs) !== false
  }

  /** Sends calls while the first call in line may leave. Sets a timer for the next call. */
  #run(): void {
    clearTimeout(this.#timer)
    while (this.#line.length > 0) {
      const nowMs = performance.now()
      const waitMs = this.#waitMs(nowMs)
      if (waitMs === 0) {
        this.#line.next(this.#send(nowMs))
        continue
      }
      this.#line.rejectUntil(nowMs + this.#leastWaitMs(nowMs), (call) => this.tooLong(call))
      if (this.#line.length > 0)
        this.#timer = setTimeout(() => this.#run(), Math.min(Math.ceil(waitMs), LONGEST_TIMER_MS))
      return
    }
  }

  #ended(sent: number): void {
    this.#inFlight--
    if (sent > this.#sentBefore) this.#inFlightSince--
  }

  #send(nowMs: number): number {
    this.#inFlight++
    if (this.#inFlightSince++ === 0) this.#askedAtMs = nowMs
    this.#lastSentAtMs = nowMs
    this.#intervalShare = 1 + (Math.random() * 2 - 1) * INTERVAL_SHARE
    this.#ceiling?.count(nowMs)
    return ++Gate.#lastSent
  }

  /** Returns the milliseconds until the next call may leave, unless a response changes that. */
  #waitMs(nowMs: number): number {
    const leastMs = Math.max(this.#leastWaitMs(nowMs), this.#spacedMs(nowMs))
    if (leastMs > 0 || this.#mode === "open" || this.#hasUnits()) return leastMs
    if (this.#mode === "paced") {
      const { forMs } = this.#scarcest() as Reading
      const until = this.#readAtMs + Math.max(forMs, SHORTEST_BLOCK_MS)
      // Wait for the next response, which contains a new number of units. It may take longer than the time until the
      // units are reset.
      if (nowMs < until && this.#inFlight > 0) return until - nowMs
      if (nowMs < until) {
        this.#block(until)
        return this.#blockedUntilMs - nowMs
      }
      this.#forget()
    }
    // Do not wait for calls that were sent before the learning, because their responses do not contain the current
    // units.
    if (this.#inFlightSince === 0) return 0
    // An API may be slow, but most APIs refuse quickly. So double the calls in flight step by step, because a refusal
    // then arrives before many calls have left.
    const aloneMs = EXCLUSIVE_MS + DOUBLING_MS * Math.log2(this.#inFlightSince)
    return Math.max(0, this.#askedAtMs + aloneMs - nowMs)
  }

  /** Returns the minimum known wait in milliseconds of a call that has `place` calls before it. */
  #leastWaitMs(nowMs: number, place = 0): number {
    const ownMs = this.#ceiling?.waitMs(nowMs, place) ?? 0
    // Ignore the interval while a call is in flight, because its response may change the interval.
    const spacedMs = this.#inFlight > 0 ? 0 : this.#spacedMs(nowMs)
    return Math.max(0, this.#blockedUntilMs - nowMs, ownMs, spacedMs)
  }

  #leastWaitOf(call: PacedCall): number {
    return this.#leastWaitMs(performance.now(), this.#line.placeOf(call))
  }

  /**
   * Returns the milliseconds until the end of the interval after the previous call. Negative if the interval has
   * already ended.
   */
  #spacedMs(nowMs: number): number {
    return this.#hasUnits() ? this.#lastSentAtMs + this.#intervalMs() - nowMs : 0
  }

  /** True if the server has units left for another call. */
  #hasUnits(): boolean {
    return this.#mode === "paced" && (this.#scarcest() as Reading).remaining - this.#inFlight >= 1
  }

  /**
   * Returns the reading with the fewest remaining units. If several readings are equal, returns the reading that
   * lasts longest.
   */
  #scarcest(): Reading | undefined {
    return [...this.#readings].sort((a, b) => a.remaining - b.remaining || b.forMs - a.forMs)[0]
  }

  /**
   * Returns the time between two calls, which is 0 while at least half of every quota remains. The units of a month are
   * not spread, because calls would fail for hours although units remain.
   */
  #intervalMs(): number {
    const intervals = this.#readings.map(({ remaining, forMs, isLong, quota = this.#mostRemaining }) =>
      remaining < quota / 2 && !isLong ? forMs / remaining : 0,
    )
    return Math.max(...intervals) * this.#intervalShare
  }

  #learn(sent: number, { dialect, readings }: ResponseLimits): void {
    this.#backoffs = 0
    if (sent <= this.#sentBefore) return
    const before = this.#mode
    if (dialect === undefined) {
      if (before === "learning") {
        this.#mode = "open"
        this.#readings = []
      }
    } else {
      const least = Math.min(...readings.map(({ remaining }) => remaining))
      // The response to an older call may lower the remaining units, but never raise them.
      if (before === "paced" && sent < this.#newest && least >= (this.#scarcest() as Reading).remaining)
        return
      this.#newest = Math.max(sent, this.#newest)
      this.#mode = "paced"
      this.#dialect = dialect
      this.#readings = readings
      this.#readAtMs = performance.now()
      this.#mostRemaining = Math.max(this.#mostRemaining, least)
    }
    if (this.#mode !== before) this.#settings.emit("learned", this.status())
  }

  /** Begins to learn again, from the next call that is sent. */
  #forget(): void {
    this.#mode = "learning"
    this.#sentBefore = Gate.#lastSent
    this.#inFlightSince = 0
  }

  #block(untilMs: number): void {
    const nowMs = performance.now()
    this.#forget()
    // All refusals during one block share its jitter. Otherwise, the largest of many jitters would apply, which is
    // nearly the same for all clients.
    if (nowMs >= this.#blockedUntilMs) this.#jitter = Math.random() * JITTER
    const jitteredMs = untilMs + Math.min(untilMs - nowMs, JITTERED_MS) * this.#jitter
    this.#blockedUntilMs = Math.max(this.#blockedUntilMs, jitteredMs)
  }

  /** Returns the wait after a refusal that contains no wait; undefined if the option `backoffMs` is 0. */
  #backoff(sent: number): number | undefined {
    const firstMs = this.#settings.backoffMs
    if (firstMs === 0) return undefined
    // Calls that were in flight together are refused together, so they count as one refusal.
    return sent <= this.#sentBefore ? 0 : backoffMs(this.#backoffs++, firstMs, LONGEST_BACKOFF_MS)
  }

  #error(code: PaceError["code"], message: string, waitMs: number): PaceError {
    return new PaceError(code, message, {
      key: this.key,
      detail: this.detail,
      retryAfterMs: waitMs || undefined,
    })
  }
}
