import { EventEmitter } from "node:events"
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2"

/**
 * Returns the HTTP/2 session that was just created on a socket. Node's public API does not expose the session of a
 * socket, so this function looks for it where Node 20 to 24 store it. Returns undefined if the session is not found.
 */
export function sessionOf(socket: object): ServerHttp2Session | undefined {
  return valuesOf(socket).find((value) => value instanceof EventEmitter && "goaway" in value) as
    | ServerHttp2Session
    | undefined
}

/** Returns the values of all own properties of an object, including symbol keys. */
export function valuesOf(object: object): unknown[] {
  return Reflect.ownKeys(object).map((key) => (object as Record<PropertyKey, unknown>)[key])
}

/**
 * Passes each stream of a session to `take` first, before the session's server. The server does not receive the
 * streams that `take` accepts. Does nothing and returns false if the session does not pass its streams to a server as
 * in Node 20 to 24.
 */
export function offerStreams(
  session: EventEmitter,
  take: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => boolean,
): boolean {
  const [toServer, ...others] = session.listeners("stream")
  if (toServer === undefined || others.length > 0) return false
  session.off("stream", toServer as () => void)
  session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, ...more: unknown[]) => {
    if (!take(stream, headers)) Reflect.apply(toServer, session, [stream, headers, ...more])
  })
  return true
}
