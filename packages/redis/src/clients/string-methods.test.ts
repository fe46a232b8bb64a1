import { setFlagsFromString } from "node:v8"
import { runInThisContext } from "node:vm"
import { expect, it } from "vitest"
import { commandsOf } from "./commands-of.ts"
import { LikeRedis } from "./testing/ioredis-like.ts"

setFlagsFromString("--allow-natives-syntax")
const isQuick: (prototype: object) => boolean = runInThisContext("(object) => %HasFastProperties(object)")

// This test can fail only in a process without an earlier store, because a store makes the methods fast permanently.
it("a store makes string methods fast again after a class has extended String", () => {
  runInThisContext("(class extends String {})")
  commandsOf(new LikeRedis())
  expect(isQuick(String.prototype)).toBe(true)
})
