import { setFlagsFromString } from "node:v8"
import { runInNewContext, runInThisContext } from "node:vm"
import { expect, it } from "vitest"
import { makeStringsQuick } from "./quick-strings.ts"

setFlagsFromString("--allow-natives-syntax")
const isQuick: (prototype: object) => boolean = runInThisContext("(object) => %HasFastProperties(object)")

/** Code that has the same effect on strings as loading ioredis. */
const EXTEND = "(class extends String {}); String.prototype"

it("string methods become fast after a class extends String, and stay fast after another class does", () => {
  const context = {}
  const prototype = runInNewContext(EXTEND, context)
  expect(isQuick(prototype)).toBe(false)
  makeStringsQuick(prototype)
  expect(isQuick(prototype)).toBe(true)
  expect(isQuick(runInNewContext(EXTEND, context))).toBe(true)
})
