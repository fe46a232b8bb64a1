import { EventEmitter } from "node:events"
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2"

/**
 * The HTTP/2 session that a socket has just become. Nothing of Node's interface leads to it from a socket, so it is looked for
 * where Node 20 to 24 have it; undefined where it is not found.
 */
export function sessionOf(socket: object): ServerHttp2Session | undefined {
  return valuesOf(socket).find((value) => value instanceof EventEmitter && "goaway" in value) as
    | ServerHttp2Session
    | undefined
}

/** What an object has, under whichever key. */
export function valuesOf(object: object): unknown[] {
  return Reflect.ownKeys(object).map((key) => (object as Record<PropertyKey, unknown>)[key])
}

/**
 * Has the streams of a session offered to `take` before its server: those that it takes the server learns nothing of. Returns
 * false, and does nothing, where the session does not hand its streams to a server as those of Node 20 to 24 do.
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
