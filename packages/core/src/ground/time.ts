import { AsyncResource } from "node:async_hooks"
import { setImmediate as nextTurn } from "node:timers/promises"
import { StoreUnavailableError } from "./errors.ts"

/** Runs it once what runs now has ended. By a promise: a test that fakes timers may have stopped `queueMicrotask`. */
export function soon(run: () => void): void {
  void Promise.resolve().then(run)
}

type Listener = () => void

/** One listener a signal: Node warns of a leak where many wait on one, which is what a signal for all of them is for. */
const listenersOf = new WeakMap<AbortSignal, Set<Listener>>()

/** Calls back when the signal is aborted. Yields what stops that. */
export function onAbort(signal: AbortSignal, listener: Listener): () => void {
  const listeners = listenersOf.get(signal) ?? listenTo(signal)
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** What `work` yields; rejects with the signal's reason when that is aborted first. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const stop = onAbort(signal, () => reject(signal.reason))
    work.finally(stop).then(resolve, reject)
  })
}

function listenTo(signal: AbortSignal): Set<Listener> {
  const listeners = new Set<Listener>()
  listenersOf.set(signal, listeners)
  const tell = (): void => {
    for (const listener of listeners) listener()
  }
  signal.addEventListener("abort", tell)
  return listeners
}

/**
 * What a store is about to answer, if it does within `timeoutMs` milliseconds, counted from the call; undefined for a store
 * that sees to its deadline itself. Rejects with what the store rejects with, or with a {@link StoreUnavailableError} of kind
 * `timeout`; what the store says later is dropped. If nobody waits for the answer, the timer does not keep the process alive.
 */
export function withinDeadline<T>(
  answers: Promise<T>,
  timeoutMs: number | undefined,
  isAwaited = true,
): Promise<T> {
  // A store that others wrote may answer with a thenable, and that one's `then` may throw.
  const answered = Promise.resolve(answers)
  if (timeoutMs === undefined) return answered
  return new Promise((resolve, reject) => {
    let grace: NodeJS.Immediate | undefined
    const timer = setTimeout(() => {
      // A stall of our own event loop is not a failure of the store: replies that have arrived are read first.
      grace = setImmediate(() => {
        reject(
          new StoreUnavailableError(`The store did not answer within ${timeoutMs} ms.`, { kind: "timeout" }),
        )
      })
    }, timeoutMs)
    if (!isAwaited) timer.unref()
    answered
      .finally(() => {
        clearTimeout(timer)
        clearImmediate(grace)
      })
      .then(resolve, reject)
  })
}

/** The context in which this module was loaded: that of no request, unless an app imports it in one. */
const outside = new AsyncResource("SluiceRedisStore")

/**
 * Runs what outlives the request that happens to cause it. A timer, a connection or a chain of calls that is started
 * in a request would otherwise keep what the request has in an AsyncLocalStorage alive.
 */
export function outsideRequests<Value>(work: () => Value): Value {
  return outside.runInAsyncScope(work)
}

/** A timer that belongs to no request. */
export function setTimer(callback: () => void, ms: number): NodeJS.Timeout {
  return outsideRequests(() => setTimeout(callback, ms))
}

/** Whether the work ends within so long; yields false as soon as that is over. Rejects when the work does. */
export async function endsWithin(ms: number, work: Promise<void>): Promise<boolean> {
  let giveUp = (): void => undefined
  const lateness = new Promise<false>((resolve) => {
    giveUp = () => resolve(false)
  })
  return Promise.race([timed(ms, work, giveUp), lateness])
}

/** Whether the work ended within so long; yields nothing before it has ended. Rejects when the work does. */
export async function endedWithin(ms: number, work: Promise<void>): Promise<boolean> {
  return timed(ms, work, () => undefined)
}

/** A stall of our own event loop does not count: what has arrived is read first. */
async function timed(ms: number, work: Promise<void>, onLate: () => void): Promise<boolean> {
  let isLate = false
  const timer = setTimer(() => {
    setImmediate(() => {
      isLate = true
      onLate()
    })
  }, ms)
  // Whoever waits for an answer watches the time, too.
  timer.unref()
  try {
    await work
    return !isLate
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Work that takes longer than this gives requests a turn: with one more document, and what the compiler does
 * meanwhile, it stays below 5 ms.
 */
const SLICE_MS = 1

/** Work in steps, such as one for each rule of a document. It yields after each of them. */
export type Steps<Result> = Generator<unknown, Result>

/** Does all steps at once. Returns the result. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** Does the steps in slices, between which the event loop has its turn. Rejects with the error that a step throws. */
export async function inSlices<Result>(steps: Steps<Result>): Promise<Result> {
  const slices = new Slices()
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (slices.isUsedUp) await slices.pause()
  }
}

/** Cuts long work into slices, between which the event loop has its turn. */
export class Slices {
  #beganAtMs = performance.now()

  /** Whether it is time for a `pause`. */
  get isUsedUp(): boolean {
    return performance.now() - this.#beganAtMs >= SLICE_MS
  }

  /** Lets requests and timers have their turn, and begins the next slice. */
  async pause(): Promise<void> {
    await nextTurn()
    this.begin()
  }

  /** Begins a slice: what came before was not this work. */
  begin(): void {
    this.#beganAtMs = performance.now()
  }
}

/** A call did not answer in time. It may still be carried out. */
export class DeadlineError extends Error {
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
    this.name = "DeadlineError"
  }
}

/**
 * What `run` yields within so many milliseconds; its signal is aborted when they are over or when the caller's signal
 * is. Rejects then at once, with DeadlineError or the caller's reason, even if `run` pays no attention to its signal: the
 * SDK pays none while it waits for credentials.
 */
export async function within<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  const running = new AbortController()
  const stop = (): void => running.abort(signal?.reason)
  const timer = setTimeout(() => running.abort(new DeadlineError(timeoutMs)), timeoutMs)
  signal?.addEventListener("abort", stop, { once: true })
  try {
    const stopped = new Promise<never>((_, reject) => {
      running.signal.addEventListener("abort", () => reject(running.signal.reason), { once: true })
    })
    return await Promise.race([stopped, run(running.signal)])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener("abort", stop)
  }
}

/** Firing it does nothing, however seldom: it is there to be referenced. */
const HELD_MS = 2 ** 31 - 1

/**
 * What `work` yields, and until then the process does not end: what a book waits on by itself holds none, and somebody
 * who awaits is there.
 */
export async function held<T>(work: Promise<T>): Promise<T> {
  const handle = setInterval(ignore, HELD_MS)
  try {
    return await work
  } finally {
    clearInterval(handle)
  }
}

/** What `work` yields; rejects with the signal's reason when it is aborted first. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  let stop: () => void = ignore
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener("abort", stop, { once: true })
  })
  try {
    return await Promise.race([aborted, work])
  } finally {
    signal.removeEventListener("abort", stop)
  }
}

/** For the ends of what nobody waits for. */
export function ignore(): void {}
