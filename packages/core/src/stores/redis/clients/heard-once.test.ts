import { EventEmitter } from "node:events"
import { expect, it } from "vitest"
import type { RedisCommands } from "../commands.ts"
import { heardOnce } from "./heard-once.ts"

function portOn(client: EventEmitter): RedisCommands {
  const none = () => Promise.reject(new Error("not asked"))
  return heardOnce({
    isCluster: false,
    isReady: () => true,
    isOpen: () => true,
    nodeOf: () => "the only one",
    evalsha: none,
    eval: none,
    del: none,
    reconnect() {},
    onReady(listener) {
      client.on("ready", listener)
      return () => void client.off("ready", listener)
    },
  })
}

it("a ready client calls all subscribers through one listener, which is removed with the last subscriber", () => {
  const client = new EventEmitter()
  const commands = portOn(client)
  const told: string[] = []
  const both = () => void told.push("both")
  expect([commands.nodeOf("a"), client.listenerCount("ready")]).toEqual(["the only one", 0])
  const stops = [
    commands.onReady(() => void told.push("one")),
    commands.onReady(both),
    commands.onReady(both),
  ] as const
  client.emit("ready")
  expect([told, client.listenerCount("ready")]).toEqual([["one", "both", "both"], 1])
  told.length = 0
  stops[1]()
  stops[1]()
  client.emit("ready")
  expect([told, client.listenerCount("ready")]).toEqual([["one", "both"], 1])
  stops[0]()
  stops[2]()
  expect(client.listenerCount("ready")).toBe(0)
  // Stopping twice does not affect a listener that was added later.
  commands.onReady(both)
  stops[2]()
  expect(client.listenerCount("ready")).toBe(1)
})
