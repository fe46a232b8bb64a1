import { EventEmitter } from "node:events"
import { types } from "node:util"

/** Streams after which a list is renewed: so few that it does not outlive two small collections, by which it would grow old. */
export const STREAMS_A_LIST = 100

/**
 * Node has the open streams of an HTTP/2 session in one Map. A Map to which is added and from which is taken for ever gets a new
 * table again and again, and V8 links the old table, with what was in it, to the new one. A full collection makes the table of
 * that moment old, and from then on every later one, and so every stream, is kept until the next full collection, and copied by each
 * small one before: a connection that lasts pays a quarter of its CPU for that. A new Map now and then is the end of such a chain.
 *
 * Nothing of Node's interface reaches that Map, so it is looked for where Node 20 to 24 have it, when the socket has just become a
 * session. Where it is not found, as in a version that keeps its streams otherwise, nothing is done and false is returned. Decision
 * 0025 has the figures.
 */
export function renewStreams(socket: object): boolean {
  const session = valuesOf(socket).find((value) => value instanceof EventEmitter && "goaway" in value)
  if (!(session instanceof EventEmitter)) return false
  const state = valuesOf(session).find(hasStreams)
  if (state === undefined) return false
  let left = STREAMS_A_LIST
  session.on("stream", () => {
    if (--left > 0) return
    // To copy many costs each of them no more than to copy few.
    left = Math.max(STREAMS_A_LIST, state.streams.size)
    // Of Node's own kind, whose methods nobody can have changed.
    const Streams = state.streams.constructor as MapConstructor
    state.streams = new Streams(state.streams)
  })
  return true
}

function valuesOf(object: object): unknown[] {
  return Reflect.ownKeys(object).map((key) => (object as Record<PropertyKey, unknown>)[key])
}

function hasStreams(value: unknown): value is { streams: Map<unknown, unknown> } {
  return typeof value === "object" && value !== null && "streams" in value && types.isMap(value.streams)
}
