import type { EventEmitter } from "node:events"
import { types } from "node:util"
import { valuesOf } from "./sessions.ts"

/**
 * Number of new streams after which a session receives a new Map. The number is small enough that the Map does not
 * survive two minor collections, which would move it to the old generation.
 */
export const STREAMS_A_LIST = 100

/**
 * Replaces the Map of a session's open streams regularly, before V8 moves the Map to the old generation.
 *
 * Node keeps the open streams of an HTTP/2 session in one Map. A Map whose entries are added and deleted allocates a
 * new internal table again and again. If the Map is in the old generation, its new tables are allocated there too. A
 * replaced table then keeps its streams alive until the next full collection, and every minor collection until then
 * copies these streams. A long-lived connection spends a quarter of its CPU time on these copies.
 *
 * Node's public API does not expose that Map, so this function looks for it where Node 20 to 24 store it. Does
 * nothing and returns false if the Map is not found, for example in a later version of Node. Decision 0011 contains
 * the figures.
 */
export function renewStreams(session: EventEmitter): boolean {
  const state = valuesOf(session).find(hasStreams)
  if (state === undefined) return false
  let left = STREAMS_A_LIST
  session.on("stream", () => {
    if (--left > 0) return
    // Wait for at least as many new streams as were copied, so that the cost per stream stays constant.
    left = Math.max(STREAMS_A_LIST, state.streams.size)
    // Use Node's own Map class, whose methods cannot have been patched.
    const Streams = state.streams.constructor as MapConstructor
    state.streams = new Streams(state.streams)
  })
  return true
}

function hasStreams(value: unknown): value is { streams: Map<unknown, unknown> } {
  return typeof value === "object" && value !== null && "streams" in value && types.isMap(value.streams)
}
