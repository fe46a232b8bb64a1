import type { WaitingClient } from "../limiter/checking/hold.ts"

/**
 * The members of Node's HTTP/1 or HTTP/2 response that show whether the client has gone. The response alone is not
 * reliable. With HTTP/1 pipelining, a response shows nothing while it is queued behind another response on the same
 * connection. Over HTTP/2, a response does not show that the client has already gone, and a response to HEAD never
 * shows it.
 */
export interface ClosingResponse {
  /** Whether "close" has been emitted. */
  readonly closed?: boolean
  /** Whether the response has been destroyed. */
  readonly destroyed?: boolean
  /** The stream on which the response is sent. Absent over HTTP/1. */
  readonly stream?: unknown
  /** The request that this response belongs to, which refers to the connection. */
  readonly req?: {
    /** The connection. */
    readonly socket?: unknown
  }
  /** Calls `listener` once, when the response closes. */
  once(event: "close", listener: () => void): unknown
  /** Removes the listener. */
  off(event: "close", listener: () => void): unknown
}

/** Anything that emits "close" at its end: a response, an HTTP/2 stream, a connection. */
type Closing = Pick<ClosingResponse, "closed" | "destroyed" | "once">

/** True if the response can no longer be sent, because the client has gone or other code has already responded. */
export function hasGone(response: ClosingResponse): boolean {
  return hasClosed(response) || hasClosed(carrierOf(response))
}

/** Calls `listener` when the client disconnects, possibly twice. Returns a function that stops listening. */
export function onGone(response: ClosingResponse, listener: () => void): () => void {
  response.once("close", listener)
  const carrier = carrierOf(response)
  const unheard = carrier === undefined ? undefined : onClose(carrier, listener)
  return () => {
    response.off("close", listener)
    unheard?.()
  }
}

/**
 * Returns the client of a response. Undefined without a response, because nothing would show that the client has
 * gone.
 */
export function clientOf(response: ClosingResponse | undefined): WaitingClient | undefined {
  return (
    response && {
      hasLeft: () => hasGone(response),
      onLeave: (listener) => onGone(response, listener),
    }
  )
}

/**
 * Returns the stream or connection on which the response is sent. Undefined if it does not emit events, for example
 * in an app that is called without a server.
 */
function carrierOf({ stream, req }: ClosingResponse): Closing | undefined {
  const carrier = (stream ?? req?.socket) as Partial<Closing> | null | undefined
  return typeof carrier?.once === "function" ? (carrier as Closing) : undefined
}

function hasClosed(closing: Closing | undefined): boolean {
  return closing?.closed === true || closing?.destroyed === true
}

/**
 * The callbacks of each connection, which share one event listener. With one listener per request, Node would warn of
 * a memory leak when many requests on one connection are held.
 */
const listenersOf = new WeakMap<Closing, Set<() => void>>()

function onClose(carrier: Closing, listener: () => void): () => void {
  const listeners = listenersOf.get(carrier) ?? listenTo(carrier)
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

/**
 * Registers the event listener of a connection. This must stay a separate function. Inside `onClose`, the closure would
 * keep the first `listener` and its request in memory until the connection ends.
 */
function listenTo(carrier: Closing): Set<() => void> {
  const listeners = new Set<() => void>()
  listenersOf.set(carrier, listeners)
  carrier.once("close", () => {
    for (const each of listeners) each()
  })
  return listeners
}
