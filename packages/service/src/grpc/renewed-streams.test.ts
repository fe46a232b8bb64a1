import { EventEmitter } from "node:events"
import { expect, it } from "vitest"
import { renewStreams } from "./renewed-streams.ts"

const session = (state: unknown) => Object.assign(new EventEmitter(), { goaway: () => undefined, state })

it.each<{ what: string; socket: object }>([
  { what: "no session", socket: { server: new EventEmitter(), handle: null } },
  { what: "a session without state", socket: { session: session(null) } },
  { what: "streams that are no Map", socket: { session: session({ streams: [] }) } },
])("nothing is done with a socket that has $what", ({ socket }) => {
  expect(renewStreams(socket)).toBe(false)
})
