import { AsyncResource } from "node:async_hooks"
import { ClosedError } from "../../ground/errors.ts"
import { ignore } from "../../ground/time.ts"
import type { ReadyOptions } from "../rule-book.ts"
import { isOutage, type LoadFailure } from "./rule-snapshot.ts"
import { retryMs, sleep, type Timing } from "./timing.ts"
import { closed, WaitingList } from "./waiting-list.ts"

export interface LoadLoopOptions {
  /**
   * One load: resolves when what it read is in force, rejects with why it is not. It is aborted when a later one is in
   * force, and must change nothing from then on. `fresh`: somebody asked for what is stored now.
   */
  readonly load: (loading: AbortController, fresh: boolean) => Promise<void>
  /** Undefined: only after a failure, and when `reload` or `refresh` says so. */
  readonly pollMs: number | undefined
  readonly staleAfterMs: number
  readonly timing: Timing
  /** Called for each failed load. */
  readonly onError: (error: LoadFailure) => void
  /** Once, when loading has failed for so long. */
  readonly onStale: (ageMs: number) => void
}

/** A poll may come earlier by this part of the interval, so that many processes do not ask together; never later. */
const JITTER = 0.2
/** One that may hang, and one that began after the latest change. */
const MOST_LOADS = 2

/**
 * Loads at once, then at intervals counted from the beginning of each load, and after a failed one at growing ones from
 * half a second to half a minute, random by half. A load that began earlier never counts after a later one.
 */
export class LoadLoop {
  readonly #options: LoadLoopOptions
  readonly #closing = new AbortController()
  readonly #waiting = new WaitingList()
  readonly #underWay = new Map<number, AbortController>()
  /** What a request causes must not keep that request's AsyncLocalStorage alive for ever. */
  readonly #outside = new AsyncResource("SluiceRuleBook")
  #begun = 0
  #settled = 0
  #isWanted = false
  /** Of the next load. */
  #isFreshWanted = false
  #failures = 0
  #loadedAtMs: number | undefined
  /** Until when the rules are known to be those of the source, or else when waiting for them began. */
  #freshAtMs: number
  #error: LoadFailure | undefined
  #next = new AbortController()
  #staleness = new AbortController()

  constructor(options: LoadLoopOptions) {
    this.#options = options
    this.#freshAtMs = options.timing.now()
  }

  /** When the latest load that succeeded began. */
  get loadedAtMs(): number | undefined {
    return this.#loadedAtMs
  }

  /** Why the latest load failed; undefined when it did not. */
  get error(): LoadFailure | undefined {
    return this.#error
  }

  get isStale(): boolean {
    return isOutage(this.#error) && this.#ageMs() >= this.#options.staleAfterMs
  }

  /**
   * Loads, or as soon as one of those under way has ended, when there are too many. `fresh`: what is stored now, where a
   * source may answer with something older.
   */
  reload(fresh = false): void {
    if (this.#closing.signal.aborted) return
    this.#isFreshWanted ||= fresh
    if (this.#underWay.size < MOST_LOADS) this.#outside.runInAsyncScope(() => void this.#load())
    else this.#isWanted = true
  }

  /** Runs `load` as the first load. Throws what it throws: nothing is loaded then. */
  loadSync(load: () => void): void {
    const begunAtMs = this.#options.timing.now()
    load()
    this.#begun += 1
    this.#settled = this.#begun
    this.#outside.runInAsyncScope(() => this.#succeed(this.#begun, begunAtMs))
  }

  /** Resolves when a load has succeeded, ever. */
  ready(options: ReadyOptions): Promise<void> {
    if (this.#loadedAtMs !== undefined) return Promise.resolve()
    return this.#waiting.add(1, options)
  }

  /** Resolves when a load that began from now on has succeeded, rejects when one has failed. */
  refresh(): Promise<void> {
    const done = this.#waiting.add(this.#begun + 1, {})
    this.reload(true)
    return done
  }

  /** Nothing is loaded any more. Who waits is told so. */
  close(): void {
    this.#stop()
    this.#waiting.close(closed())
  }

  /** Nothing is loaded here any more, as nobody needs it or somebody else does it. Who waits need not wait. */
  end(): void {
    this.#stop()
    this.#waiting.succeeded(Number.POSITIVE_INFINITY)
  }

  #stop(): void {
    const error = closed()
    this.#closing.abort(error)
    this.#next.abort()
    this.#staleness.abort()
    for (const loading of this.#underWay.values()) loading.abort(error)
  }

  async #load(): Promise<void> {
    this.#next.abort()
    this.#begun += 1
    const number = this.#begun
    const fresh = this.#isFreshWanted
    this.#isFreshWanted = false
    const begunAtMs = this.#options.timing.now()
    const loading = new AbortController()
    this.#underWay.set(number, loading)
    let error: LoadFailure | undefined
    try {
      await this.#options.load(loading, fresh)
    } catch (thrown) {
      error = thrown as LoadFailure
    }
    this.#underWay.delete(number)
    if (this.#closing.signal.aborted) return
    if (number > this.#settled) {
      this.#settled = number
      if (error === undefined) this.#succeed(number, begunAtMs)
      else this.#fail(number, begunAtMs, error)
    }
    if (this.#isWanted) {
      this.#isWanted = false
      this.reload()
    }
  }

  #succeed(number: number, begunAtMs: number): void {
    this.#failures = 0
    this.#error = undefined
    this.#loadedAtMs = begunAtMs
    this.#freshAtMs = begunAtMs
    this.#staleness.abort()
    for (const [other, loading] of this.#underWay)
      if (other < number) loading.abort(new ClosedError("A later load is in force"))
    const { pollMs, timing } = this.#options
    if (pollMs !== undefined) {
      const dueMs = pollMs * (1 - JITTER * timing.random()) - (timing.now() - begunAtMs)
      // Loads that take longer than the interval leave the source a moment all the same.
      this.#plan(number, Math.max(dueMs, pollMs / 10))
    }
    this.#waiting.succeeded(number)
  }

  #fail(number: number, begunAtMs: number, error: LoadFailure): void {
    const { pollMs, timing, onError } = this.#options
    const before = this.#error
    this.#failures += 1
    this.#error = error
    if (!isOutage(error)) {
      // The source has answered, so the rules are not stale, even though it has none that can be used.
      this.#freshAtMs = begunAtMs
      this.#staleness.abort()
    } else if (!isOutage(before)) {
      // What is not polled is known to be right until something seemed to have changed.
      if (pollMs === undefined && this.#loadedAtMs !== undefined) this.#freshAtMs = begunAtMs
      void this.#tellWhenStale()
    }
    this.#plan(number, retryMs(this.#failures, timing))
    onError(error)
    this.#waiting.failed(number, error)
  }

  /** The next load in so many milliseconds, unless one is under way that began later: that one plans by itself. */
  #plan(number: number, ms: number): void {
    if (number !== this.#begun) return
    this.#next = new AbortController()
    sleep(ms, this.#next.signal, this.#options.timing).then(() => this.reload(), ignore)
  }

  async #tellWhenStale(): Promise<void> {
    const { staleAfterMs, timing, onStale } = this.#options
    this.#staleness = new AbortController()
    const { signal } = this.#staleness
    try {
      await sleep(Math.max(0, staleAfterMs - this.#ageMs()), signal, timing)
    } catch {
      return
    }
    onStale(this.#ageMs())
  }

  #ageMs(): number {
    return this.#options.timing.now() - this.#freshAtMs
  }
}
