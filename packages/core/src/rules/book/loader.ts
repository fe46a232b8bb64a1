import type { AsyncResource } from "node:async_hooks"
import { ClosedError } from "../../ground/errors.ts"
import { ignore } from "../../ground/time.ts"
import type { ReadyOptions } from "../rule-book.ts"
import type { ParsedBookOptions } from "./options.ts"
import { isOutage, type LoadFailure } from "./rule-snapshot.ts"
import { Staleness } from "./staleness.ts"
import { nextPollMs, retryMs, sleep } from "./timing.ts"
import { closed, WaitingList } from "./waiting-list.ts"

/** One load of a service, or of the list of all services. */
export interface Load {
  /** Counts all loads of a book from 1: what a load has read never replaces what one with a higher number has read. */
  readonly number: number
  /** True if the source must answer with what is stored now. */
  readonly fresh: boolean
  /** Aborted when a later load is in force, when the source does not answer in time, and when the book is closed. */
  readonly loading: AbortController
}

/** What a loader loads, and who hears how it went. */
export interface LoadTask {
  /**
   * Resolves when what it read is in force, rejects with why it is not. Rejects with the signal's ClosedError, and changes nothing
   * more, when a later load is in force or the book is closed.
   */
  load(load: Load): Promise<void>
  /** Called for each failed load. */
  onError(error: LoadFailure): void
  /** Called once when a kept loader has failed for `staleAfterMs`, until a load succeeds. */
  onStale(ageMs: number): void
}

/** What the loaders of a book share. */
export interface LoaderSettings
  extends Pick<ParsedBookOptions, "pollMs" | "rememberMs" | "staleAfterMs" | "timing"> {
  /** How many loads have begun in the book. */
  readonly count: { begun: number }
  /** Loads run in it: what a request causes must not keep that request's AsyncLocalStorage alive. */
  readonly outside: AsyncResource
}

/** One that may hang, and one that began after the latest change. */
const MOST_LOADS = 2

/**
 * Loads the rules of one service, or the list of all services, again and again. A loader is idle or loading. When a load ends, the next
 * is due after the poll interval or, after a failure, after a backoff from half a second to half a minute. A kept loader
 * begins it by a timer, a resting one when somebody asks. A second load may begin beside one that hangs; what an earlier load
 * reads never counts after what a later one has read.
 */
export class Loader {
  readonly #settings: LoaderSettings
  readonly #task: LoadTask
  readonly #waiting = new WaitingList()
  /** At most two, so a list is smaller than a map: a book remembers thousands of loaders. */
  #underWay: readonly Load[] = []
  /** Numbers of the latest load that began, of the latest that ended, and of the first that has read the latest change. */
  #begun = 0
  #settled = 0
  #validFrom = 1
  #isKept = false
  #isClosed = false
  /** True if a load is to begin as soon as one under way has ended. */
  #isWanted = false
  #isFreshWanted = false
  #failures = 0
  #error: LoadFailure | undefined
  #loadedAtMs: number | undefined
  #dueMs = 0
  /** Ends the wait for the next load. */
  #next: AbortController | undefined
  readonly #staleness: Staleness

  constructor(settings: LoaderSettings, task: LoadTask) {
    this.#settings = settings
    this.#task = task
    this.#staleness = new Staleness(settings, task.onStale)
  }

  /** True while it loads by itself. */
  get isKept(): boolean {
    return this.#isKept
  }

  /** When the latest load that succeeded began. */
  get loadedAtMs(): number | undefined {
    return this.#loadedAtMs
  }

  /** Why the latest load failed; undefined if it did not. */
  get error(): LoadFailure | undefined {
    return this.#error
  }

  /** True if it will load no more. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  get isStale(): boolean {
    return isOutage(this.#error) && this.#staleness.isDue
  }

  /** True if a resting loader may load again: the interval or the backoff is over, and no load that counts is under way. */
  get isDue(): boolean {
    return this.#dueMs <= this.#settings.timing.now() && !this.#isLoading
  }

  /** Loads now and by itself from now on. What happened to earlier loads does not count. */
  keep(fresh = false): void {
    this.#begin()
    this.reload(fresh)
  }

  /** Loads by itself from now on, with `load` as the first load. Throws what it throws: nothing has changed then. */
  keepFrom(load: (number: number) => void): void {
    const begunAtMs = this.#settings.timing.now()
    const number = this.#nextNumber()
    load(number)
    this.#begin()
    this.#begun = number
    this.#settled = number
    this.#settings.outside.runInAsyncScope(() => this.#succeed(number, begunAtMs))
  }

  /** Rests, because another loader's load of this number has brought its rules into force, or was rejected with `error`. */
  rest(number: number, error: LoadFailure | undefined): void {
    this.#isKept = false
    this.#settled = Math.max(this.#settled, number)
    this.#abort(number, new ClosedError("A later load is in force"))
    if (error === undefined) this.#waiting.succeeded(number)
    else this.#waiting.failed(number, error)
  }

  /** Loads, or as soon as one of the loads under way has ended if there are too many. `fresh`: what is stored now. */
  reload(fresh = false): void {
    if (this.#isClosed) return
    this.#isFreshWanted ||= fresh
    if (this.#underWay.length < MOST_LOADS) this.#settings.outside.runInAsyncScope(() => void this.#load())
    else this.#isWanted = true
  }

  /** Resolves when a load that begins from now on has succeeded, or a later one; rejects when one has failed. */
  refresh(): Promise<void> {
    const done = this.#waiting.add(this.#settings.count.begun + 1, {})
    this.reload(true)
    return done
  }

  /** Resolves when a load has succeeded since the loader is kept. */
  ready(options: ReadyOptions): Promise<void> {
    if (this.#loadedAtMs !== undefined) return Promise.resolve()
    return this.#waiting.add(1, options)
  }

  /** Resolves when there is an answer, or no load that could bring one is under way. */
  async answered(): Promise<void> {
    while (this.#loadedAtMs === undefined && this.#isLoading) {
      await this.#waiting.add(this.#begun, {}).catch(ignore)
    }
  }

  /** What is stored may have changed: a load may begin now. `isKnown`: until it ends, the latest answer is good. */
  expire(isKnown: boolean): void {
    this.#dueMs = 0
    this.#validFrom = this.#begun + 1
    if (!isKnown) this.#loadedAtMs = undefined
  }

  /** Loads no more, because nobody needs it: whoever waits need not wait. */
  end(): void {
    this.#stop()
    this.#waiting.succeeded(Number.POSITIVE_INFINITY)
  }

  /** Loads no more: whoever waits is told so. */
  close(): void {
    this.#stop()
    this.#waiting.close(closed())
  }

  get #isLoading(): boolean {
    return this.#begun >= this.#validFrom && this.#underWay.some(({ number }) => number === this.#begun)
  }

  #begin(): void {
    this.#isKept = true
    this.#failures = 0
    this.#error = undefined
    this.#loadedAtMs = undefined
    this.#staleness.renew(this.#settings.timing.now())
  }

  #stop(): void {
    this.#isClosed = true
    this.#isWanted = false
    this.#abort(Number.POSITIVE_INFINITY, closed())
  }

  /** Ends the waits for later, and loads that began before the one of this number. */
  #abort(number: number, reason: ClosedError): void {
    this.#next?.abort()
    this.#staleness.end()
    const earlier = this.#underWay.filter((load) => load.number < number)
    this.#underWay = this.#underWay.filter((load) => load.number >= number)
    for (const { loading } of earlier) loading.abort(reason)
  }

  #nextNumber(): number {
    this.#settings.count.begun += 1
    return this.#settings.count.begun
  }

  async #load(): Promise<void> {
    this.#next?.abort()
    const number = this.#nextNumber()
    const begunAtMs = this.#settings.timing.now()
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
    if (number > this.#settled && !this.#isClosed) {
      this.#settled = number
      if (error === undefined) this.#succeed(number, begunAtMs)
      // No later load has aborted it, so the book is closed.
      else if (error instanceof ClosedError) this.close()
      else this.#fail(number, begunAtMs, error as LoadFailure)
    }
    if (this.#isWanted) {
      this.#isWanted = false
      this.reload()
    }
  }

  #succeed(number: number, begunAtMs: number): void {
    const { pollMs, rememberMs, timing } = this.#settings
    this.#failures = 0
    this.#error = undefined
    this.#staleness.renew(begunAtMs)
    this.#abort(number, new ClosedError("A later load is in force"))
    if (number >= this.#validFrom) this.#loadedAtMs = begunAtMs
    if (!this.#isKept) this.#plan(number, nextPollMs(rememberMs, begunAtMs, timing, 0))
    else if (pollMs !== undefined) this.#plan(number, nextPollMs(pollMs, begunAtMs, timing))
    this.#waiting.succeeded(number)
  }

  #fail(number: number, begunAtMs: number, error: LoadFailure): void {
    const { pollMs, timing } = this.#settings
    const before = this.#error
    this.#failures += 1
    this.#error = error
    if (!isOutage(error)) {
      // The source has answered, so the rules are not stale, even though it has none that can be used.
      this.#staleness.renew(begunAtMs)
    } else if (this.#isKept && !isOutage(before)) {
      // What is not polled is known to be right until something seemed to have changed.
      if (pollMs === undefined && this.#loadedAtMs !== undefined) this.#staleness.renew(begunAtMs)
      void this.#staleness.begin()
    }
    this.#plan(number, retryMs(this.#failures, timing))
    this.#task.onError(error)
    this.#waiting.failed(number, error)
  }

  /** The next load is due in so many milliseconds, unless a later load will say when, or a change made it due at once. */
  #plan(number: number, ms: number): void {
    if (number !== this.#begun || number < this.#validFrom) return
    const { timing } = this.#settings
    this.#dueMs = timing.now() + ms
    if (!this.#isKept) return
    this.#next = new AbortController()
    sleep(ms, this.#next.signal, timing).then(() => this.reload(), ignore)
  }
}
