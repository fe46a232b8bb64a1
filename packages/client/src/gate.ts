import type { Answer } from "./answer.ts"
import type { PaceEvents } from "./events.ts"
import type { GateMode, GateStatus } from "./gate-status.ts"
import { CallLine } from "./line.ts"
import type { ParsedPacedOptions } from "./options.ts"
import { OwnCeiling } from "./own-ceiling.ts"
import { PaceError } from "./pace-error.ts"
import type { Reading } from "./reading.ts"
import { RetryBudget } from "./retries.ts"
import type { PacedCall } from "./watch.ts"

/** A block ends up to this share later, so that clients with the same wait do not return in the same millisecond. */
const JITTER = 0.25
/** The shortest block, so that a server that says "0 left, for 0 s" is not asked in a loop. */
const SHORTEST_BLOCK_MS = 50
/** The interval between two calls is between 0.75 and 1.25 times the even one. */
const [LEAST_INTERVAL, MOST_INTERVAL] = [0.75, 1.25]
/** The longest delay of a timer in JavaScript engines. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** What a gate needs to know besides the calls. */
export interface GateSettings extends Pick<ParsedPacedOptions, "maxWaiting" | "limit" | "retryBudget"> {
  readonly emit: <Name extends keyof PaceEvents>(name: Name, event: PaceEvents[Name]) => void
}

/**
 * The calls of one key. Decides when the first one in line may leave, by what the responses say. Times are those of
 * `performance.now()`, which never goes back.
 */
export class Gate {
  readonly #key: string
  readonly #settings: GateSettings
  readonly #line = new CallLine()
  readonly #ceiling: OwnCeiling | undefined
  #mode: GateMode = "learning"
  #dialect: string | undefined
  #readings: readonly Reading[] = []
  #readAtMs = 0
  /** The largest remaining quota so far. Stands in for the quota if the server does not tell it. */
  #mostRemaining = 0
  /** The number of the last call that was sent, and of the last one whose response was read. */
  #lastSent = 0
  #newest = 0
  /** Calls up to this one were sent before a refusal, so that their responses do not end the learning after it. */
  #sentBeforeRefusal = 0
  #inFlight = 0
  /** Those of them that were sent after the last refusal. */
  #inFlightSince = 0
  #lastSentAtMs = Number.NEGATIVE_INFINITY
  #intervalShare = 1
  #blockedUntilMs = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly budget: RetryBudget
  /** What the server said when it last refused a call. */
  detail: string | undefined

  constructor(key: string, settings: GateSettings) {
    this.#key = key
    this.#settings = settings
    const { limit, retryBudget } = settings
    this.budget = new RetryBudget(retryBudget)
    this.#ceiling = limit && new OwnCeiling(limit.limit, limit.windowMs)
  }

  /**
   * Resolves with the number of the call once it may be sent. Rejects with the reason of a signal, or with
   * {@link PaceError} if the call would wait too long or the line is full.
   */
  enter(call: PacedCall): Promise<number> {
    const nowMs = performance.now()
    const aborted = call.signals.find((signal) => signal.aborted)
    if (aborted !== undefined) return Promise.reject(aborted.reason)
    if (this.#line.length === 0 && this.#waitMs(nowMs) === 0) return Promise.resolve(this.#send(nowMs))
    const error = this.whyNot(call)
    if (error !== undefined) return Promise.reject(error)
    const joined = this.#line.join(
      call,
      () => this.tooLong(),
      () => this.#run(),
    )
    this.#settings.emit("wait", this.status())
    this.#run()
    return joined
  }

  /** Returns the reason why a call cannot wait in this line; undefined if it can. */
  whyNot(call: PacedCall): PaceError | undefined {
    if (this.#line.length >= this.#settings.maxWaiting) {
      const message = `${this.#line.length} calls of ${this.#key} wait already. Send fewer calls, or raise "maxWaiting".`
      return this.#error("SLUICE_PACE_LINE_FULL", message)
    }
    return performance.now() + call.waitLeftMs < this.#blockedUntilMs ? this.tooLong() : undefined
  }

  /** Returns the error of a call that would wait too long, or has waited too long. */
  tooLong(): PaceError {
    const blockedForMs = Math.max(0, this.#blockedUntilMs - performance.now())
    const until = blockedForMs > 0 ? `; the next one may leave in ${Math.ceil(blockedForMs / 1000)} s` : ""
    const message = `The calls of ${this.#key} wait longer than "maxWaitMs"${until}. Try again later, or raise "maxWaitMs".`
    return this.#error("SLUICE_PACE_WAIT_TOO_LONG", message, blockedForMs || undefined)
  }

  /** Takes the head of a response to the call with this number. */
  answered(sent: number, answer: Answer): void {
    this.#ended(sent)
    if (answer.waitMs !== undefined) this.blockFor(answer.waitMs)
    else {
      if (!answer.isRefused) this.#learn(sent, answer)
      this.#run()
    }
  }

  /** Tells that the call with this number has no response. */
  failed(sent: number): void {
    this.#ended(sent)
    this.#run()
  }

  /** Lets no call leave for so long, and then one call to learn from. */
  blockFor(ms: number): void {
    this.#sentBeforeRefusal = this.#lastSent
    this.#inFlightSince = 0
    this.#block(performance.now() + Math.max(ms, SHORTEST_BLOCK_MS))
    this.#run()
  }

  status(): GateStatus {
    const scarcest = this.#scarcest()
    return {
      key: this.#key,
      mode: this.#mode,
      dialect: this.#dialect,
      waiting: this.#line.length,
      inFlight: this.#inFlight,
      remaining: scarcest?.remaining,
      quota: scarcest?.quota,
      blockedForMs: Math.max(0, this.#blockedUntilMs - performance.now()),
    }
  }

  /** Whether the gate remembers nothing that a new gate would not learn from its first response. */
  isIdle(nowMs: number): boolean {
    const longestMs = Math.max(0, ...this.#readings.map(({ forMs }) => forMs))
    const isForgotten = nowMs >= this.#blockedUntilMs && nowMs >= this.#readAtMs + longestMs
    const isUsed = this.#inFlight > 0 || this.#line.length > 0
    return isForgotten && !isUsed && (this.#ceiling?.isEmpty(nowMs) ?? true)
  }

  /** Sends calls as long as the first one in line may leave. Sets a timer if time alone decides about the next. */
  #run(): void {
    clearTimeout(this.#timer)
    while (this.#line.length > 0) {
      const nowMs = performance.now()
      const waitMs = this.#waitMs(nowMs)
      if (waitMs === 0) {
        this.#line.next(this.#send(nowMs))
        continue
      }
      // A block rejects the calls that cannot wait for its end, which may have been all.
      if (waitMs < Number.POSITIVE_INFINITY && this.#line.length > 0)
        this.#timer = setTimeout(() => this.#run(), Math.min(Math.ceil(waitMs), LONGEST_TIMER_MS))
      return
    }
  }

  #ended(sent: number): void {
    this.#inFlight--
    if (sent > this.#sentBeforeRefusal) this.#inFlightSince--
  }

  #send(nowMs: number): number {
    this.#inFlight++
    this.#inFlightSince++
    this.#lastSentAtMs = nowMs
    this.#intervalShare = LEAST_INTERVAL + Math.random() * (MOST_INTERVAL - LEAST_INTERVAL)
    this.#ceiling?.count(nowMs)
    return ++this.#lastSent
  }

  /** Returns the milliseconds until the next call may leave; Infinity if a response decides about that. */
  #waitMs(nowMs: number): number {
    if (nowMs < this.#blockedUntilMs) return this.#blockedUntilMs - nowMs
    const ownMs = this.#ceiling?.waitMs(nowMs) ?? 0
    if (ownMs > 0 || this.#mode === "open") return ownMs
    if (this.#mode === "paced") {
      const { remaining, forMs } = this.#scarcest() as Reading
      if (remaining - this.#inFlight >= 1) return Math.max(0, this.#lastSentAtMs + this.#intervalMs() - nowMs)
      // The next response brings a new number of units.
      if (this.#inFlight > 0) return Number.POSITIVE_INFINITY
      const until = this.#readAtMs + Math.max(forMs, SHORTEST_BLOCK_MS)
      // An old reading may have run out while the gate was idle. Then ask the server at once.
      if (until <= nowMs) this.#mode = "learning"
      else {
        this.#block(until)
        return this.#blockedUntilMs - nowMs
      }
    }
    // A call that was sent before a refusal may take long, and tells nothing.
    return this.#inFlightSince > 0 ? Number.POSITIVE_INFINITY : 0
  }

  /** Returns the reading with the fewest units left. Of several without any, the one that lasts longest. */
  #scarcest(): Reading | undefined {
    return this.#readings.toSorted((a, b) => a.remaining - b.remaining || b.forMs - a.forMs)[0]
  }

  /** Returns the time between two calls: none while at least half of every quota is left. */
  #intervalMs(): number {
    const intervals = this.#readings.map(({ remaining, forMs, quota = this.#mostRemaining }) =>
      remaining < quota / 2 ? forMs / remaining : 0,
    )
    return Math.max(...intervals) * this.#intervalShare
  }

  #learn(sent: number, { dialect, readings }: Answer): void {
    if (sent <= this.#sentBeforeRefusal) return
    const before = this.#mode
    if (dialect === undefined) {
      if (before === "learning") this.#mode = "open"
    } else {
      const least = Math.min(...readings.map(({ remaining }) => remaining))
      // The response to an older call may lower what is left, but never raise it.
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

  #block(untilMs: number): void {
    const nowMs = performance.now()
    this.#mode = "learning"
    const jittered = nowMs + (untilMs - nowMs) * (1 + Math.random() * JITTER)
    this.#blockedUntilMs = Math.max(this.#blockedUntilMs, jittered)
    this.#line.rejectUntil(this.#blockedUntilMs, () => this.tooLong())
  }

  #error(code: PaceError["code"], message: string, retryAfterMs?: number): PaceError {
    return new PaceError(code, message, { key: this.#key, detail: this.detail, retryAfterMs })
  }
}
