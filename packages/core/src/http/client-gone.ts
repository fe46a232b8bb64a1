import type { WaitingClient } from "../limiter/hold.ts"

/**
 * Node's response, of HTTP/1 or HTTP/2, as far as it tells that its client has gone. By itself it does not always: not while it
 * stands behind another one of its connection (HTTP/1 pipelining), and over HTTP/2 neither afterwards nor of HEAD.
 */
export interface ClosingResponse {
  /** Whether "close" has been told. */
  readonly closed?: boolean
  /** Whether it has been torn down. */
  readonly destroyed?: boolean
  /** The stream that it travels by. Only over HTTP/2. */
  readonly stream?: unknown
  /** The request that it answers, for the connection that both travel by. */
  readonly req?: {
    /** The connection. */
    readonly socket?: unknown
  }
  /** Calls back at its end, once. */
  once(event: "close", listener: () => void): unknown
  /** Calls back no more. */
  off(event: "close", listener: () => void): unknown
}

/** What tells of its end: a response, an HTTP/2 stream, a connection. */
type Closing = Pick<ClosingResponse, "closed" | "destroyed" | "once">

/** Whether the client has gone, or has been answered by somebody else: there is nobody to answer any more. */
export function hasGone(response: ClosingResponse): boolean {
  return hasClosed(response) || hasClosed(carrierOf(response))
}

/** Calls back when the client goes, once or twice. Yields what stops that. */
export function onGone(response: ClosingResponse, listener: () => void): () => void {
  response.once("close", listener)
  const carrier = carrierOf(response)
  const unheard = carrier === undefined ? undefined : onClose(carrier, listener)
  return () => {
    response.off("close", listener)
    unheard?.()
  }
}

/** Returns the client behind a response; undefined without a response, when nothing shows that it has gone. */
export function clientOf(response: ClosingResponse | undefined): WaitingClient | undefined {
  return (
    response && {
      hasLeft: () => hasGone(response),
      onLeave: (listener) => onGone(response, listener),
    }
  )
}

/** What the response travels by; undefined where what there is tells nothing, as in an app that is called without a server. */
function carrierOf({ stream, req }: ClosingResponse): Closing | undefined {
  const carrier = (stream ?? req?.socket) as Partial<Closing> | null | undefined
  return typeof carrier?.once === "function" ? (carrier as Closing) : undefined
}

function hasClosed(closing: Closing | undefined): boolean {
  return closing?.closed === true || closing?.destroyed === true
}

/** One listener a connection: Node warns of a leak where many requests of one are held. */
const listenersOf = new WeakMap<Closing, Set<() => void>>()

function onClose(carrier: Closing, listener: () => void): () => void {
  const listeners = listenersOf.get(carrier) ?? listenTo(carrier)
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

/** A function of its own: a closure beside a listener would keep that listener, and its request, until the connection ends. */
function listenTo(carrier: Closing): Set<() => void> {
  const listeners = new Set<() => void>()
  listenersOf.set(carrier, listeners)
  carrier.once("close", () => {
    for (const each of listeners) each()
  })
  return listeners
}
