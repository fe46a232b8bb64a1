import { AsyncResource } from "node:async_hooks"
import { setImmediate as nextTurn } from "node:timers/promises"

/** The longest delay of a timer, in milliseconds: Node fires a timer with a longer one at once. */
export const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/** The async context in which this module was loaded: no request's, unless the app imports it while it serves one. */
const outside = new AsyncResource("Sluice")

/**
 * Runs work that outlives the request that causes it. A timer, a connection or a chain of calls that starts inside a request
 * would otherwise keep alive what the request holds in an AsyncLocalStorage.
 */
export function outsideRequests<Value>(work: () => Value): Value {
  return outside.runInAsyncScope(work)
}

/** Sets a timer that belongs to no request. */
export function setTimer(callback: () => void, ms: number): NodeJS.Timeout {
  return outsideRequests(() => setTimeout(callback, ms))
}

/** Runs the callback in a microtask. Does not use `queueMicrotask`, which a test with fake timers may have stopped. */
export function soon(run: () => void): void {
  void Promise.resolve().then(run)
}

/**
 * Calls back after `ms` milliseconds and one more turn of the event loop. If the event loop stalled, replies that have arrived
 * are read in that turn, so a stall of this process does not count as a failure of the server. Returns the function that
 * cancels the callback.
 */
export function atDeadline(ms: number, onLate: () => void, keepsAlive = true): () => void {
  let grace: NodeJS.Immediate | undefined
  const timer = setTimer(() => {
    grace = setImmediate(onLate)
  }, ms)
  if (!keepsAlive) timer.unref()
  return () => {
    clearTimeout(timer)
    clearImmediate(grace)
  }
}

/**
 * Settles as `work` does, or as `late()` does if `work` is still pending {@link atDeadline}. What `work` does later is dropped.
 * The timer keeps the process alive unless `keepsAlive` is false.
 */
export function beforeDeadline<T>(
  work: PromiseLike<T>,
  ms: number,
  late: () => T | Promise<T>,
  keepsAlive = true,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = atDeadline(ms, () => resolve(late()), keepsAlive)
    // A thenable that others wrote may throw in its `then`.
    Promise.resolve(work).finally(cancel).then(resolve, reject)
  })
}

/** The callbacks of each signal. Node warns of a leak when many callers add listeners to one signal, so each gets only one. */
const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls back when the signal is aborted, not if it already is. Returns the function that cancels the callback. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let callbacks = callbacksOf.get(signal)
  if (callbacks === undefined) {
    const all = new Set<() => void>()
    callbacks = all
    callbacksOf.set(signal, all)
    signal.addEventListener("abort", () => {
      for (const each of all) each()
    })
  }
  callbacks.add(callback)
  return () => void callbacks.delete(callback)
}

/** Settles as `work` does, or rejects with the signal's reason as soon as the signal is aborted. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    const cancel = onAbort(signal, () => reject(signal.reason))
    work.finally(cancel).then(resolve, reject)
  })
}

/**
 * Passes `run` a signal that is aborted with `tooLate()` after `ms` milliseconds, and with the caller's reason when the
 * caller's signal is aborted. Rejects at once in both cases, even if `run` ignores its signal.
 */
export async function abortedAfter<T>(
  ms: number,
  signal: AbortSignal | undefined,
  tooLate: () => Error,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  const running = new AbortController()
  const timer = setTimer(() => running.abort(tooLate()), ms)
  const cancel = signal === undefined ? ignore : onAbort(signal, () => running.abort(signal.reason))
  try {
    return await unlessAborted(run(running.signal), running.signal)
  } finally {
    clearTimeout(timer)
    cancel()
  }
}

/**
 * Settles as `work` does, and keeps the process alive until then. Loading rules in the background does not; a caller that
 * awaits it does.
 */
export async function held<T>(work: Promise<T>): Promise<T> {
  // The interval does nothing: a referenced timer is what keeps the event loop alive.
  const handle = setInterval(ignore, LONGEST_TIMER_MS)
  try {
    return await work
  } finally {
    clearInterval(handle)
  }
}

/** Does nothing: the handler for the end of work that nobody waits for. */
export function ignore(): void {}

/** A step may take this long before the event loop gets its turn. With one more document, a slice stays below 5 ms. */
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

  /** True when it is time for a `pause`. */
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
