import { setFlagsFromString } from "node:v8"
import { runInNewContext, runInThisContext } from "node:vm"
import { Redis } from "ioredis"
import { expect, it } from "vitest"
import { commandsOf } from "./commands-of.ts"
import { makeStringsQuick } from "./quick-strings.ts"

setFlagsFromString("--allow-natives-syntax")
const isQuick: (prototype: object) => boolean = runInThisContext("(object) => %HasFastProperties(object)")

// First, as it is so for good in a process.
it("methods of strings are quick in a process that has a store and a client", () => {
  expect(isQuick(String.prototype)).toBe(false)
  const client = new Redis({ lazyConnect: true })
  commandsOf(client)
  expect(isQuick(String.prototype)).toBe(true)
  client.disconnect()
})

it("methods of strings are made quick once there is a class that extends String, whatever comes later", () => {
  const extend = "(class extends String {}); String.prototype"
  const context = {}
  const prototype = runInNewContext(extend, context)
  expect(isQuick(prototype)).toBe(false)
  makeStringsQuick(prototype)
  expect(isQuick(prototype)).toBe(true)
  expect(isQuick(runInNewContext(extend, context))).toBe(true)
})
