import { ClosedError } from "@sluice/core"
import { after, outsideRequests } from "@sluice/core/kit"
import { ignore, type ReadyOptions, unlessAborted } from "@sluice/core/rules"
import { isOutage, type LoadFailure, loadError } from "./edition.ts"
import type { ParsedBookOptions } from "./options.ts"
import { nextPollMs, retryMs } from "./timing.ts"

/** One load of a service, or of the list of all services. */
export interface Load {
  /**
   * Number of the load; all loads of a process are counted from 1. The result of a load never replaces the result of
   * a load with a higher number.
   */
  readonly number: number
  /** True if the source must return the currently stored rules. */
  readonly fresh: boolean
  /**
   * Aborted when the result of a later load is in force, when the source does not respond in time, and when the book is
   * closed.
   */
  readonly loading: AbortController
}

/** The work of a loader, with callbacks for its results. */
export interface LoadTask {
  /** The service, for messages. Undefined for the list of all services. */
  readonly service: string | undefined
  /** Resolves when the result is in force; rejects with the reason if it is not. */
  load(load: Load): Promise<void>
  /** Called for each failed load, unless the result of a later load is in force. */
  onError(error: LoadFailure): void
  /** Called when a kept loader has failed for `staleAfterMs`. Not called again until a load succeeds. */
  onStale(ageMs: number): void
}

/** A call that waits for the result of a load. */
interface Waiting {
  /** Number of the first load that can end this wait; 0 if any load can. */
  readonly from: number
  /** True if a failed load does not end the wait. */
  readonly retry: boolean
  settle(error: Error | undefined): void
}

/** Number of loads that have begun in this process. */
let loadsBegun = 0

/** Maximum number of concurrent loads: one that may hang, and one that began after the latest change. */
const MOST_LOADS = 2

/**
 * Loads the rules of one service, or the list of all services, again and again. The table lists its states and
 * transitions:
 *
 * | state     | event                                 | next state                                                  |
 * | --------- | ------------------------------------- | ----------------------------------------------------------- |
 * | resting   | a lookup finds that a load is due     | loading, then resting until the interval is over            |
 * | resting   | `keep`                                | loading, then kept                                          |
 * | kept      | timer, change of the source           | loading, then kept: next load after the poll interval       |
 * | kept      | `rest`: the list has loaded the rules | resting; loads that began before the list's load are aborted |
 * | loading   | change, `refresh`                     | a second load begins; further ones begin when a load ends   |
 * | loading   | the load succeeds                     | earlier loads are aborted, calls that wait for it resolve   |
 * | loading   | the load fails or takes 10 s          | next load after a backoff; waiting calls reject, unless they retry |
 * | failing   | `staleAfterMs` since the last success | reported as stale once, until a load succeeds               |
 * | any       | `close`                               | closed: loads are aborted and waiting calls settle          |
 *
 * The result of a load is ignored if a load that began later has already returned a result.
 */
export class Loader {
  /** True while the loader loads periodically. Only the loader itself writes this property. */
  isKept = false
  /** True if the loader never loads again. */
  isClosed = false
  /** When the latest successful load began. */
  loadedAtMs: number | undefined
  /** Why the latest load failed; undefined if it succeeded. */
  error: LoadFailure | undefined
  readonly #options: ParsedBookOptions
  readonly #task: LoadTask
  #waiting: readonly Waiting[] = []
  /**
   * The running loads, at most two. An array, because it uses less memory than a map and a book remembers thousands
   * of loaders.
   */
  #underWay: readonly Load[] = []
  /**
   * Numbers of three loads: the latest that began, the latest that ended, and the first that has read the latest
   * change.
   */
  #begun = 0
  #settled = 0
  #validFrom = 1
  /** The load that must begin as soon as a running load ends. */
  #wanted: "any" | "fresh" | undefined
  #failures = 0
  #dueMs = 0
  /** The time when the rules last matched the source, or else when the wait for the first rules began. */
  #freshAtMs: number
  #cancelNext: () => void = ignore
  #cancelStale: () => void = ignore

  constructor(options: ParsedBookOptions, task: LoadTask) {
    this.#options = options
    this.#task = task
    this.#freshAtMs = this.#nowMs
  }

  /** True if the rules may be out of date, because the source has not responded for a long time. */
  get isStale(): boolean {
    return isOutage(this.error) && this.#nowMs - this.#freshAtMs >= this.#options.staleAfterMs
  }

  /** True if the interval or backoff of a resting loader is over, and the latest change is not being loaded. */
  get isDue(): boolean {
    return this.#dueMs <= this.#nowMs && !this.#isLoading
  }

  /** Loads now, and starts to load periodically. Results of earlier loads are ignored. */
  keep(fresh = false): void {
    this.#begin()
    this.reload(fresh)
  }

  /**
   * Starts to load periodically, with `load` as the first load. If `load` throws, rethrows its error and changes
   * nothing.
   */
  keepFrom(load: (number: number) => void): void {
    const begunAtMs = this.#nowMs
    const number = ++loadsBegun
    load(number)
    this.#begin()
    this.#begun = number
    this.#settled = number
    outsideRequests(() => this.#succeed(number, begunAtMs))
  }

  /** Rests, because another loader's load with this number has put the rules in force or was rejected with `error`. */
  rest(number: number, error: LoadFailure | undefined): void {
    this.isKept = false
    this.#settled = Math.max(this.#settled, number)
    this.#abort(number, REPLACED)
    this.#settle(number, error)
  }

  /**
   * Loads now, or as soon as a running load ends if too many loads are running. With `fresh`, the source must return
   * the currently stored rules.
   */
  reload(fresh = false): void {
    if (this.isClosed) return
    if (this.#underWay.length < MOST_LOADS) outsideRequests(() => void this.#load(fresh))
    else if (fresh || this.#wanted === undefined) this.#wanted = fresh ? "fresh" : "any"
  }

  /** Resolves when a load that begins after this call has succeeded. Rejects when such a load fails. */
  refresh(): Promise<void> {
    const done = this.#wait(loadsBegun + 1, {})
    this.reload(true)
    return done
  }

  /**
   * Resolves immediately if `isLoaded`, and otherwise when a load succeeds. Rejects when a load fails, unless `retry`
   * is true.
   */
  async ready(options: ReadyOptions, isLoaded: boolean = this.loadedAtMs !== undefined): Promise<void> {
    options.signal?.throwIfAborted()
    if (this.isClosed) throw closed()
    if (!isLoaded) await this.#wait(0, options)
  }

  /** Resolves when a result is available, or when no running load can return one. */
  async answered(): Promise<void> {
    while (this.loadedAtMs === undefined && this.#isLoading) {
      await this.#wait(this.#begun, {}).catch(ignore)
    }
  }

  /**
   * Allows a load to begin now, because the stored rules may have changed. If `isKnown`, the latest result stays
   * valid until the new load ends.
   */
  expire(isKnown: boolean): void {
    this.#dueMs = 0
    this.#validFrom = this.#begun + 1
    if (!isKnown) this.loadedAtMs = undefined
  }

  /**
   * Settles the calls of `ready`: without an error if the rules are not needed, or with the error of another loader.
   */
  release(error?: Error): void {
    this.#settle(0, error)
  }

  /**
   * Stops loading. Waiting calls reject with the error. Without an error, they resolve, because the rules are not
   * needed.
   */
  close(error?: ClosedError): void {
    this.isClosed = true
    this.#wanted = undefined
    this.#abort(Number.POSITIVE_INFINITY, CLOSED)
    for (const { settle } of this.#waiting) settle(error)
  }

  get #nowMs(): number {
    return this.#options.timing.now()
  }

  get #isLoading(): boolean {
    return this.#begun >= this.#validFrom && this.#underWay.some(({ number }) => number === this.#begun)
  }

  #begin(): void {
    this.isKept = true
    this.#failures = 0
    this.error = undefined
    this.loadedAtMs = undefined
    this.#renew(this.#nowMs)
  }

  /**
   * Resolves when a load with this number or a higher number has succeeded. Rejects when such a load fails, unless
   * `retry` is true. Rejects with the signal's reason when it is aborted.
   */
  async #wait(from: number, { retry = false, signal }: ReadyOptions): Promise<void> {
    if (this.isClosed) throw closed()
    let waiting: Waiting | undefined
    const ended = new Promise<void>((resolve, reject) => {
      waiting = { from, retry, settle: (error) => (error === undefined ? resolve() : reject(error)) }
      this.#waiting = [...this.#waiting, waiting]
    })
    try {
      await unlessAborted(ended, signal)
    } finally {
      this.#waiting = this.#waiting.filter((other) => other !== waiting)
    }
  }

  /** Settles the calls that wait for a load with this number or a lower number. */
  #settle(number: number, error: Error | undefined): void {
    for (const { from, retry, settle } of this.#waiting) {
      if (from <= number && !(retry && error !== undefined)) settle(error)
    }
  }

  /** Cancels the load that is scheduled next, and aborts loads that began before the load with this number. */
  #abort(number: number, reason: string): void {
    this.#cancelNext()
    this.#cancelStale()
    const earlier = this.#underWay.filter((load) => load.number < number)
    if (earlier.length === 0) return
    this.#underWay = this.#underWay.filter((load) => load.number >= number)
    for (const { loading } of earlier) loading.abort(new ClosedError(reason))
  }

  async #load(fresh: boolean): Promise<void> {
    this.#cancelNext()
    const number = ++loadsBegun
    const begunAtMs = this.#nowMs
    const load: Load = { number, fresh, loading: new AbortController() }
    this.#begun = number
    this.#underWay = [...this.#underWay, load]
    let failure: LoadFailure | undefined
    try {
      await this.#task.load(load)
    } catch (error) {
      failure = loadError(this.#task.service, error)
    }
    this.#underWay = this.#underWay.filter((other) => other !== load)
    if (number > this.#settled && !this.isClosed) {
      this.#settled = number
      if (failure === undefined) this.#succeed(number, begunAtMs)
      else this.#fail(number, begunAtMs, failure)
    }
    const wanted = this.#wanted
    this.#wanted = undefined
    if (wanted !== undefined) this.reload(wanted === "fresh")
  }

  #succeed(number: number, begunAtMs: number): void {
    const { pollMs, rememberMs, timing } = this.#options
    this.#failures = 0
    this.error = undefined
    this.#freshAtMs = begunAtMs
    this.#abort(number, REPLACED)
    if (number >= this.#validFrom) this.loadedAtMs = begunAtMs
    if (!this.isKept) this.#plan(number, nextPollMs(rememberMs, begunAtMs, timing, 0))
    else if (pollMs !== undefined) this.#plan(number, nextPollMs(pollMs, begunAtMs, timing))
    this.#settle(number, undefined)
  }

  #fail(number: number, begunAtMs: number, error: LoadFailure): void {
    const { pollMs, timing } = this.#options
    const wasFailing = isOutage(this.error)
    this.#failures += 1
    this.error = error
    if (!isOutage(error)) {
      // The source has responded, so the rules are not stale, even if none of the returned rules are valid.
      this.#renew(begunAtMs)
    } else if (this.isKept && !wasFailing) {
      // Without polling, rules are current until the source reports a change.
      if (pollMs === undefined && this.loadedAtMs !== undefined) this.#renew(begunAtMs)
      this.#reportWhenStale()
    }
    this.#plan(number, retryMs(this.#failures, timing))
    this.#task.onError(error)
    this.#settle(number, error)
  }

  /**
   * Schedules the next load in `ms` milliseconds, unless a later load will schedule it, or a change made the load due
   * immediately.
   */
  #plan(number: number, ms: number): void {
    if (number !== this.#begun || number < this.#validFrom) return
    this.#dueMs = this.#nowMs + ms
    if (this.isKept) this.#cancelNext = after(ms, this.#options.timing, () => this.reload())
  }

  /** Records that the rules matched the source at this time. */
  #renew(freshAtMs: number): void {
    this.#freshAtMs = freshAtMs
    this.#cancelStale()
  }

  #reportWhenStale(): void {
    const { staleAfterMs, timing } = this.#options
    const leftMs = Math.max(0, staleAfterMs - (this.#nowMs - this.#freshAtMs))
    this.#cancelStale = after(leftMs, timing, () => this.#task.onStale(this.#nowMs - this.#freshAtMs))
  }
}

const REPLACED = "A newer load has replaced this one"
const CLOSED = "The rule book is closed"

/** Returns the error of calls to a closed book. */
export function closed(): ClosedError {
  return new ClosedError(CLOSED)
}
