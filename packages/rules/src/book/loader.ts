import { ClosedError } from "@sluice/core"
import { outsideRequests } from "@sluice/core/kit"
import { ignore, type ReadyOptions } from "@sluice/core/rules"
import type { ParsedBookOptions } from "./options.ts"
import { isOutage, type LoadFailure } from "./rule-snapshot.ts"
import { Staleness } from "./staleness.ts"
import { after, nextPollMs, retryMs } from "./timing.ts"
import { closed, WaitingList } from "./waiting-list.ts"

/** One load of a service, or of the list of all services. */
export interface Load {
  /**
   * Number of the load; all loads of a process are counted from 1. A result never replaces the result of a load with a
   * higher number.
   */
  readonly number: number
  /** True if the source must return what is stored now. */
  readonly fresh: boolean
  /** Aborted when a later load is in force, when the source does not answer in time, and when the book is closed. */
  readonly loading: AbortController
}

/** The work of a loader, with callbacks for its results. */
export interface LoadTask {
  /**
   * Resolves when the result is in force; rejects with the reason if it is not. When a later load is in force or the
   * book is closed, it rejects with the signal's ClosedError and changes nothing more.
   */
  load(load: Load): Promise<void>
  /** Called for each failed load. */
  onError(error: LoadFailure): void
  /** Called once when a kept loader has failed for `staleAfterMs`, until a load succeeds. */
  onStale(ageMs: number): void
}

/** Number of loads that have begun in this process. */
let loadsBegun = 0

/** Two loads: one that may hang, and one that began after the latest change. */
const MOST_LOADS = 2

/**
 * Loads the rules of one service, or the list of all services, again and again. A loader is idle or loading. After a
 * load, the next is due after the poll interval or, after a failure, after a backoff. A kept loader starts the next
 * load by a timer. A resting loader starts it when its rules are asked for. A second load may begin while another one
 * hangs. The result of an earlier load never counts after the result of a later one.
 */
export class Loader {
  /** True while the loader loads by itself. Only the loader sets its members. */
  isKept = false
  /** True if the loader never loads again. */
  isClosed = false
  /** When the latest successful load began. */
  loadedAtMs: number | undefined
  /** Why the latest load failed; undefined if it succeeded. */
  error: LoadFailure | undefined
  readonly #options: ParsedBookOptions
  readonly #task: LoadTask
  readonly #waiting = new WaitingList()
  /** The loads under way, at most two. A list is smaller than a map, and a book remembers thousands of loaders. */
  #underWay: readonly Load[] = []
  /**
   * Numbers of three loads: the latest that began, the latest that ended, and the first that has read the latest
   * change.
   */
  #begun = 0
  #settled = 0
  #validFrom = 1
  /** True if a load must begin as soon as one under way has ended. */
  #isWanted = false
  #isFreshWanted = false
  #failures = 0
  #dueMs = 0
  #cancelNext: () => void = ignore
  readonly #staleness: Staleness

  constructor(options: ParsedBookOptions, task: LoadTask) {
    this.#options = options
    this.#task = task
    this.#staleness = new Staleness(options, task.onStale)
  }

  get isStale(): boolean {
    return isOutage(this.error) && this.#staleness.isDue
  }

  /** True if the interval or backoff of a resting loader is over, and the latest change is not being loaded. */
  get isDue(): boolean {
    return this.#dueMs <= this.#options.timing.now() && !this.#isLoading
  }

  /** Loads now, and starts to load periodically. Results of earlier loads do not count. */
  keep(fresh = false): void {
    this.#begin()
    this.reload(fresh)
  }

  /**
   * Loads by itself from now on, with `load` as the first load. If `load` throws, rethrows its error and changes
   * nothing.
   */
  keepFrom(load: (number: number) => void): void {
    const begunAtMs = this.#options.timing.now()
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
    this.#abort(number, new ClosedError("A newer load has replaced this one"))
    if (error === undefined) this.#waiting.succeeded(number)
    else this.#waiting.failed(number, error)
  }

  /**
   * Loads now, or as soon as one of the loads under way has ended if there are too many. `fresh` asks for what is
   * stored now.
   */
  reload(fresh = false): void {
    if (this.isClosed) return
    this.#isFreshWanted ||= fresh
    if (this.#underWay.length < MOST_LOADS) outsideRequests(() => void this.#load())
    else this.#isWanted = true
  }

  /** Resolves when a load that begins from now on, or a later one, has succeeded. Rejects when one has failed. */
  refresh(): Promise<void> {
    const done = this.#waiting.add(loadsBegun + 1, {})
    this.reload(true)
    return done
  }

  /** Resolves when a load has succeeded since the loader was kept. */
  ready(options: ReadyOptions): Promise<void> {
    if (this.loadedAtMs !== undefined) return Promise.resolve()
    return this.#waiting.add(1, options)
  }

  /** Resolves when there is an answer, or when a load that could bring one is no longer under way. */
  async answered(): Promise<void> {
    while (this.loadedAtMs === undefined && this.#isLoading) {
      await this.#waiting.add(this.#begun, {}).catch(ignore)
    }
  }

  /**
   * Allows a load to begin now, because the stored rules may have changed. If `isKnown`, the latest answer counts until
   * that load ends.
   */
  expire(isKnown: boolean): void {
    this.#dueMs = 0
    this.#validFrom = this.#begun + 1
    if (!isKnown) this.loadedAtMs = undefined
  }

  /** Stops loading because the rules are no longer needed. Resolves all waiting calls. */
  end(): void {
    this.#stop()
    this.#waiting.succeeded(Number.POSITIVE_INFINITY)
  }

  /** Stops loading and rejects all waiting calls. */
  close(): void {
    this.#stop()
    this.#waiting.close(closed())
  }

  get #isLoading(): boolean {
    return this.#begun >= this.#validFrom && this.#underWay.some(({ number }) => number === this.#begun)
  }

  #begin(): void {
    this.isKept = true
    this.#failures = 0
    this.error = undefined
    this.loadedAtMs = undefined
    this.#staleness.renew(this.#options.timing.now())
  }

  #stop(): void {
    this.isClosed = true
    this.#isWanted = false
    this.#abort(Number.POSITIVE_INFINITY, closed())
  }

  /** Cancels the waits for later, and aborts loads that began before the load with this number. */
  #abort(number: number, reason: ClosedError): void {
    this.#cancelNext()
    this.#staleness.end()
    const earlier = this.#underWay.filter((load) => load.number < number)
    this.#underWay = this.#underWay.filter((load) => load.number >= number)
    for (const { loading } of earlier) loading.abort(reason)
  }

  async #load(): Promise<void> {
    this.#cancelNext()
    const number = ++loadsBegun
    const begunAtMs = this.#options.timing.now()
    const load: Load = { number, fresh: this.#isFreshWanted, loading: new AbortController() }
    this.#begun = number
    this.#isFreshWanted = false
    this.#underWay = [...this.#underWay, load]
    let error: unknown
    try {
      await this.#task.load(load)
    } catch (thrown) {
      error = thrown
    }
    this.#underWay = this.#underWay.filter((other) => other !== load)
    if (number > this.#settled && !this.isClosed) {
      this.#settled = number
      if (error === undefined) this.#succeed(number, begunAtMs)
      // A later load has not aborted it, so the book is closed.
      else if (error instanceof ClosedError) this.close()
      else this.#fail(number, begunAtMs, error as LoadFailure)
    }
    if (this.#isWanted) {
      this.#isWanted = false
      this.reload()
    }
  }

  #succeed(number: number, begunAtMs: number): void {
    const { pollMs, rememberMs, timing } = this.#options
    this.#failures = 0
    this.error = undefined
    this.#staleness.renew(begunAtMs)
    this.#abort(number, new ClosedError("A newer load has replaced this one"))
    if (number >= this.#validFrom) this.loadedAtMs = begunAtMs
    if (!this.isKept) this.#plan(number, nextPollMs(rememberMs, begunAtMs, timing, 0))
    else if (pollMs !== undefined) this.#plan(number, nextPollMs(pollMs, begunAtMs, timing))
    this.#waiting.succeeded(number)
  }

  #fail(number: number, begunAtMs: number, error: LoadFailure): void {
    const { pollMs, timing } = this.#options
    const before = this.error
    this.#failures += 1
    this.error = error
    if (!isOutage(error)) {
      // The source has answered, so the rules are not stale, even if none of them can be used.
      this.#staleness.renew(begunAtMs)
    } else if (this.isKept && !isOutage(before)) {
      // Without polling, rules are current until the source reports a change.
      if (pollMs === undefined && this.loadedAtMs !== undefined) this.#staleness.renew(begunAtMs)
      this.#staleness.begin()
    }
    this.#plan(number, retryMs(this.#failures, timing))
    this.#task.onError(error)
    this.#waiting.failed(number, error)
  }

  /** Schedules the next load in `ms` milliseconds, unless a later load schedules it or a change made it due at once. */
  #plan(number: number, ms: number): void {
    if (number !== this.#begun || number < this.#validFrom) return
    const { timing } = this.#options
    this.#dueMs = timing.now() + ms
    if (!this.isKept) return
    this.#cancelNext = after(ms, timing, () => this.reload())
  }
}
