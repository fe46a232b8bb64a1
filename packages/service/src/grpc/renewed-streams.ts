import type { EventEmitter } from "node:events"
import { types } from "node:util"
import { valuesOf } from "./sessions.ts"

/** Streams after which a list is renewed: so few that it does not outlive two small collections, by which it would grow old. */
export const STREAMS_A_LIST = 100

/**
 * Node has the open streams of an HTTP/2 session in one Map. A Map to which is added and from which is taken for ever gets a new
 * table again and again. When the Map is old, so is its new table from the first, and the one that it replaces keeps the streams
 * that were in it until the next full collection: they are copied by each small one before, and a connection that lasts pays a
 * quarter of its CPU for that. So a session gets a new Map now and then, before it has grown old.
 *
 * Nothing of Node's interface reaches that Map, so it is looked for where Node 20 to 24 have it. Where it is not found, as in a
 * version that keeps its streams otherwise, nothing is done and false is returned. Decision 0025 has the figures.
 */
export function renewStreams(session: EventEmitter): boolean {
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

function hasStreams(value: unknown): value is { streams: Map<unknown, unknown> } {
  return typeof value === "object" && value !== null && "streams" in value && types.isMap(value.streams)
}
