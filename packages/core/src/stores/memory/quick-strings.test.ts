import { setFlagsFromString } from "node:v8"
import { runInThisContext } from "node:vm"
import { expect, it } from "vitest"
import { memoryStore } from "./memory-store.ts"

setFlagsFromString("--allow-natives-syntax")

// This test has its own file, because string methods that have become fast stay fast for the rest of the process.
it("string methods stay fast in a process with a memory store, even if ioredis was loaded before", () => {
  // Slow down string methods as ioredis does when it is loaded.
  runInThisContext("(class extends String {}); String.prototype")
  memoryStore()
  expect(runInThisContext("%HasFastProperties(String.prototype)")).toBe(true)
})
