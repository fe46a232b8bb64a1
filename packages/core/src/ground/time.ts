/*
 * The six ways to wait. Each uses the app's clock or the timers of Node:
 *
 * - `setTimer` calls back after milliseconds of the process, outside of requests.
 * - `after` calls back after milliseconds of a clock, and can be canceled.
 * - `waitOf` returns how a clock waits, as a promise that a signal ends.
 * - `beforeDeadline` settles like some work, or in another way at a deadline.
 * - `unlessAborted` settles like some work, or rejects when a signal is aborted.
 * - `keepingAlive` settles like some work, and keeps the process alive until then.
 *
 * test/mechanisms.test.ts finds other ways.
 */
import { AsyncResource } from "node:async_hooks"
import { type Clock, steadyClock } from "./clock.ts"

/** The longest delay of a timer in milliseconds. Node fires a timer with a longer delay immediately. */
export const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/**
 * The async context in which this module was loaded. This context is outside all requests, unless a request imports
 * the module.
 */
const outside = new AsyncResource("Sluice")

/**
 * Runs work that outlives the request that causes it. Otherwise a timer, a connection or a chain of calls that starts
 * inside a request would keep the request's AsyncLocalStorage context in memory.
 */
export function outsideRequests<Value>(work: () => Value): Value {
  return outside.runInAsyncScope(work)
}

/** Sets a timer outside the async context of any request. */
export function setTimer(callback: () => void, ms: number): NodeJS.Timeout {
  return outsideRequests(() => setTimeout(callback, ms))
}

/** Runs the callback in a microtask. Does not use `queueMicrotask`, which fake timers in a test may have stopped. */
export function soon(run: () => void): void {
  void Promise.resolve().then(run)
}

/**
 * Returns a function that waits with the clock's own `wait`, or with a timer if the clock has none. The timer keeps
 * the process alive only if `keepsAlive` is true. The wait rejects with the signal's reason when the signal is
 * aborted.
 */
export function waitOf(clock: Clock, keepsAlive = false): NonNullable<Clock["wait"]> {
  return clock.wait === undefined
    ? (ms, signal) => waitByTimer(ms, signal, keepsAlive)
    : clock.wait.bind(clock)
}

/**
 * Waits with the global `setTimeout`, which a test may have faked. The steady clock then follows the fake time, but
 * test libraries do not fake `node:timers/promises`. A monitoring tool may also have wrapped `setTimeout`.
 */
async function waitByTimer(ms: number, signal: AbortSignal | undefined, keepsAlive: boolean): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort)
      resolve()
    }, ms)
    // Fake timers that imitate a browser return a number, which has no `unref`.
    if (!keepsAlive) (timer as Partial<NodeJS.Timeout>).unref?.()
    signal?.addEventListener("abort", abort, { once: true })
  })
}

/** The reason to stop a wait. Without a given reason, each abort would create an error with a stack, which is slow. */
const NOT_NEEDED = new Error("The wait is not needed.")

/**
 * Calls back after `ms` milliseconds of the clock, or calls `failed` if the clock cannot wait. Returns the function
 * that cancels both callbacks. If the clock has no `wait` of its own, a timer is used, which keeps the process alive
 * if `keepsAlive` is true.
 */
export function after(
  ms: number,
  clock: Clock,
  callback: () => void,
  failed: (error: unknown) => void = ignore,
  keepsAlive = false,
): () => void {
  const waiting = new AbortController()
  const { signal } = waiting
  // Use an async function, because a clock may throw. Check the signal again afterwards, because a clock may ignore
  // it.
  const wait = async (): Promise<void> => {
    await waitOf(clock, keepsAlive)(ms, signal)
  }
  wait().then(
    () => {
      if (!signal.aborted) callback()
    },
    (error: unknown) => {
      if (!signal.aborted) failed(error)
    },
  )
  return () => waiting.abort(NOT_NEEDED)
}

/**
 * Calls back after `ms` milliseconds and one more tick of the event loop. If the event loop stalled, replies that
 * have arrived are read in that tick. So a stall of this process does not count as a failure of the server. Returns
 * the function that cancels the callback.
 */
function atDeadline(ms: number, onLate: () => void, keepsAlive: boolean): () => void {
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
 * Settles as `work` does, or as `late()` does if `work` is still pending after `ms` milliseconds. A later result of
 * `work` is ignored. If the clock has its own `wait`, it measures the time. Otherwise a timer measures the time, and
 * keeps the process alive unless `keepsAlive` is false. With a timer, replies that arrived during a stall of the
 * event loop still count.
 */
export function beforeDeadline<T>(
  work: PromiseLike<T>,
  ms: number,
  late: () => T | Promise<T>,
  keepsAlive = true,
  clock: Clock = steadyClock,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const onLate = (): void => resolve(late())
    const byTimer = (): (() => void) => atDeadline(ms, onLate, keepsAlive)
    let cancel: () => void
    if (clock.wait === undefined) cancel = byTimer()
    // A timer replaces a clock that cannot wait.
    else
      cancel = after(ms, clock, onLate, () => {
        cancel = byTimer()
      })
    // Wrap `work`, because the `then` of a foreign thenable may throw.
    Promise.resolve(work).then(
      (value) => {
        cancel()
        resolve(value)
      },
      (error: unknown) => {
        cancel()
        reject(error)
      },
    )
  })
}

/**
 * The callbacks of each signal. Node warns of a leak when many listeners are added to one signal, so each signal gets
 * only one listener.
 */
const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls back when the signal is aborted, but not if the signal is already aborted. Returns the function that cancels
 * the callback.
 */
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
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    const cancel = onAbort(signal, () => reject(signal.reason))
    work.finally(cancel).then(resolve, reject)
  })
}

/**
 * Settles as `work` does, and keeps the process alive until then. Loading rules in the background does not keep the
 * process alive, but a caller that awaits the load does.
 */
export async function keepingAlive<T>(work: Promise<T>): Promise<T> {
  // A no-op interval keeps the event loop alive, because its timer is referenced.
  const handle = setInterval(ignore, LONGEST_TIMER_MS)
  try {
    return await work
  } finally {
    clearInterval(handle)
  }
}

/** Does nothing. Use this function as the handler for work that is not awaited. */
export function ignore(): void {}
