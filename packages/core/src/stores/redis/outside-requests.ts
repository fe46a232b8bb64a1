import { AsyncResource } from "node:async_hooks"

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
