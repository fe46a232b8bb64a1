import { EventEmitter } from "node:events"
import { expect, it } from "vitest"
import { offerStreams, sessionOf } from "./sessions.ts"

it("sessionOf finds the session of a socket under any symbol key", () => {
  const session = Object.assign(new EventEmitter(), { goaway: () => undefined })
  expect(sessionOf({ server: new EventEmitter(), handle: null, [Symbol("session")]: session })).toBe(session)
  expect(sessionOf({ server: new EventEmitter(), handle: null })).toBeUndefined()
})

it("offerStreams passes unclaimed streams to the server's own listener with the original arguments", () => {
  const session = new EventEmitter()
  const handed: unknown[][] = []
  session.on("stream", function (this: unknown, ...given: unknown[]) {
    handed.push([this, ...given])
  })
  expect(offerStreams(session, (_stream, headers) => headers[":path"] === "/taken")).toBe(true)
  const [one, other] = [{}, {}]
  session.emit("stream", one, { ":path": "/taken" }, 4, [])
  session.emit("stream", other, { ":path": "/left" }, 5, ["raw"])
  expect(handed).toEqual([[session, other, { ":path": "/left" }, 5, ["raw"]]])
  expect(handed[0]?.[1]).toBe(other)
})

it.each([
  ["no listener", []],
  ["several listeners", ["server", "other"]],
])("offerStreams does not intercept the streams of a session with %s", (_what, listeners) => {
  const session = new EventEmitter()
  const handed: string[] = []
  for (const name of listeners) session.on("stream", () => handed.push(name))
  expect(offerStreams(session, () => true)).toBe(false)
  session.emit("stream", {}, {})
  expect(handed).toEqual(listeners)
})
