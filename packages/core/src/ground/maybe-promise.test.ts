import { setImmediate as nextTurn } from "node:timers/promises"
import { runInNewContext } from "node:vm"
import { expect, it } from "vitest"
import { ignoreRejection, isThenable } from "./maybe-promise.ts"

it.each([
  [Promise.resolve(1), true],
  // biome-ignore lint/suspicious/noThenProperty: `await` waits for any thenable
  [{ then: () => undefined }, true],
  // biome-ignore lint/suspicious/noThenProperty: not a function
  [{ then: 1 }, false],
  ["text", false],
  [undefined, false],
  [null, false],
])("isThenable(%o) is %s", (value, expected) => {
  expect(isThenable<unknown>(value)).toBe(expected)
})

it("ignoreRejection handles the rejection of a promise, even if the promise is from another realm", async () => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown): number => unhandled.push(reason)
  process.on("unhandledRejection", listen)
  try {
    ignoreRejection(Promise.reject(new Error("ours")))
    ignoreRejection(runInNewContext("Promise.reject(new Error('theirs'))"))
    await nextTurn()
    expect(unhandled).toEqual([])
  } finally {
    process.off("unhandledRejection", listen)
  }
})

it("ignoreRejection does not call a thenable's then(), and accepts any other value", () => {
  let started = 0
  // biome-ignore lint/suspicious/noThenProperty: a query that runs when it is awaited
  ignoreRejection({ then: () => started++ })
  ignoreRejection("text")
  ignoreRejection(undefined)
  expect(started).toBe(0)
})
