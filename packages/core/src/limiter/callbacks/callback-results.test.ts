import { expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { createWarner } from "../../ground/warnings.ts"
import { Callback } from "./callback.ts"
import { CallbackResults } from "./callback-results.ts"

const CONTEXT = {
  callbackTimeoutMs: 1_000,
  clock: manualClock(),
  warner: createWarner({ warn() {}, error() {} }, () => undefined),
}

it("the results of a request contain the values from before the first promise, so no function is called twice", async () => {
  const called: unknown[] = []
  const callbacks = ["plan", "cost", Promise.resolve("user"), "limit"].map(
    (value, index) =>
      new Callback<unknown>(
        () => {
          called.push(index)
          return value
        },
        CONTEXT,
        { read: (result) => result, failed: (what) => what },
      ),
  )
  const results = new CallbackResults({})
  const read = () => callbacks.map((callback) => results.resultOf(callback))
  expect(await results.complete(read)).toEqual(["plan", "cost", "user", "limit"])
  expect(read()).toEqual(["plan", "cost", "user", "limit"])
  expect(called).toEqual([0, 1, 2, 3])
})
