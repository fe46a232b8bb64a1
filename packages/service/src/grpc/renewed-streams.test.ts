import { EventEmitter } from "node:events"
import { expect, it } from "vitest"
import { renewStreams, STREAMS_A_LIST } from "./renewed-streams.ts"

const session = (state: unknown) => Object.assign(new EventEmitter(), { state })

it.each<{ what: string; state: unknown }>([
  { what: "no state", state: null },
  { what: "streams that are not a Map", state: { streams: [] } },
])("renewStreams does nothing to a session with $what", ({ state }) => {
  expect(renewStreams(session(state))).toBe(false)
})

it("renewStreams replaces a session's Map of streams after as many new streams as it must copy", () => {
  const open = new Map<number, object>()
  const state = { streams: open }
  const one = session(state)
  expect(renewStreams(one)).toBe(true)
  let id = 0
  /** Opens this number of streams. Returns the number of different Maps that were in use meanwhile. */
  const lists = (streams: number) => {
    const seen = new Set<Map<number, object>>()
    for (let opened = 0; opened < streams; opened++) {
      state.streams.set(++id, {})
      one.emit("stream")
      seen.add(state.streams)
    }
    return seen.size
  }
  expect(lists(STREAMS_A_LIST - 1)).toBe(1)
  expect(state.streams).toBe(open)
  expect(lists(1)).toBe(1)
  expect(state.streams).not.toBe(open)
  expect([...state.streams]).toEqual([...open])
  expect(lists(STREAMS_A_LIST)).toBe(2)
  expect(lists(2 * STREAMS_A_LIST - 1)).toBe(1)
  expect(lists(1)).toBe(1)
  expect(lists(1)).toBe(1)
  expect(state.streams.size).toBe(4 * STREAMS_A_LIST + 1)
})
