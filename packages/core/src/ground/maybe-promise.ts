import { types } from "node:util"

/** A value, or a promise for it. Code that receives a plain value continues synchronously. */
export type MaybePromise<T> = T | Promise<T>

/** The result that a function of the app may return: a value, or any kind of promise for it. */
export type Awaitable<T> = T | PromiseLike<T>

/** True for a promise and for any other object that `await` would wait for. */
export function isThenable<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | null | undefined)?.then === "function"
}

/** Ignores the rejection of a promise that is not awaited. Does nothing to other values, including thenables. */
export function ignoreRejection(value: unknown): void {
  if (types.isPromise(value)) value.catch(() => undefined)
}
