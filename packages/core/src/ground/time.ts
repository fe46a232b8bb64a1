import { AsyncResource } from "node:async_hooks"
import { setImmediate as nextTurn } from "node:timers/promises"

/** The longest delay of a timer in milliseconds. Node fires a timer with a longer delay at once. */
export const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/**
 * The async context in which this module was loaded. It is outside all requests unless a request imports the module.
 */
const outside = new AsyncResource("Sluice")

/**
 * Runs work that outlives the request that causes it. Otherwise a timer, a connection or a chain of calls that starts
 * inside a request would keep alive what the request holds in an AsyncLocalStorage.
 */
export function outsideRequests<Value>(work: () => Value): Value {
  return outside.runInAsyncScope(work)
}

/** Sets a timer outside the async context of any request. */
export function setTimer(callback: () => void, ms: number): NodeJS.Timeout {
  return outsideRequests(() => setTimeout(callback, ms))
}

/** Runs the callback in a microtask. Avoids `queueMicrotask`, which fake timers in a test may have stopped. */
export function soon(run: () => void): void {
  void Promise.resolve().then(run)
}

/**
 * Calls back after `ms` milliseconds and one more turn of the event loop. If the event loop stalled, replies that have
 * arrived are read in that turn. So a stall of this process does not count as a failure of the server. Returns the
 * function that cancels the callback.
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
 * Settles as `work` does, or as `late()` does if `work` is still pending {@link atDeadline}. A later result of `work`
 * is dropped. The timer keeps the process alive unless `keepsAlive` is false.
 */
export function beforeDeadline<T>(
  work: PromiseLike<T>,
  ms: number,
  late: () => T | Promise<T>,
  keepsAlive = true,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = atDeadline(ms, () => resolve(late()), keepsAlive)
    // Wrap `work`, because the `then` of a foreign thenable may throw.
    Promise.resolve(work).finally(cancel).then(resolve, reject)
  })
}

/**
 * The callbacks of each signal. Node warns of a leak when many listeners are added to one signal, so each signal gets
 * only one listener.
 */
const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls back when the signal is aborted, but not if it already is. Returns the function that cancels the callback. */
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
 * Settles as `work` does, and keeps the process alive until then. Loading rules in the background does not; a caller
 * that awaits it does.
 */
export async function held<T>(work: Promise<T>): Promise<T> {
  // A no-op interval keeps the event loop alive, because its timer is referenced.
  const handle = setInterval(ignore, LONGEST_TIMER_MS)
  try {
    return await work
  } finally {
    clearInterval(handle)
  }
}

/** Does nothing. Use it as the handler of work that is not awaited. */
export function ignore(): void {}

/** Steps run for this long before the event loop gets its turn. With one more document, a slice stays below 5 ms. */
const SLICE_MS = 1

/** Work in steps, such as one for each rule of a document. It yields after each of them. */
export type Steps<Result> = Generator<unknown, Result>

/** Runs all steps at once. Returns the result. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** Runs the steps in slices and lets the event loop run in between. Rejects with the error that a step throws. */
export async function inSlices<Result>(steps: Steps<Result>): Promise<Result> {
  const slices = new Slices()
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (slices.isUsedUp) await slices.pause()
  }
}

/** A timer that cuts long work into slices, so that the event loop can run between them. */
export class Slices {
  #beganAtMs = performance.now()

  /** True when it is time for a `pause`. */
  get isUsedUp(): boolean {
    return performance.now() - this.#beganAtMs >= SLICE_MS
  }

  /** Lets requests and timers run, then begins the next slice. */
  async pause(): Promise<void> {
    await nextTurn()
    this.begin()
  }

  /** Begins a slice. The time before it does not count. */
  begin(): void {
    this.#beganAtMs = performance.now()
  }
}
