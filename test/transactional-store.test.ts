import { createLimiter } from "@sluice/core"
import { transactionalStore } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"

describe("a transactional store", () => {
  it("makes a limiter's decisions degraded if its back end throws, rejects or hangs", async () => {
    const logger = { warn() {}, error() {} }
    const down = new Error("connection refused")
    for (const transact of [
      () => {
        throw down
      },
      async () => {
        throw down
      },
      () => new Promise<void>(() => {}),
    ]) {
      const store = transactionalStore({ transact })
      const limiter = createLimiter({
        ...{ limit: 1, window: "1 minute", service: "shop", onStoreFailure: "allow", storeTimeoutMs: 20 },
        ...{ store, logger },
      } as const)
      expect(await limiter.decide({ remoteAddress: "192.0.2.1" })).toMatchObject({
        allowed: true,
        degraded: true,
      })
      await limiter.close()
    }
  })
})

it.each([
  [undefined, "the back end has no method transact(); accepted: an object with transact(keys, change)"],
  [{}, "the back end has no method transact()"],
  [{ transact() {}, isShared: 1 }, "isShared: is not a boolean; accepted: true or false"],
  [{ transact() {}, close: 5 }, "close: is not a function; accepted: a function, or undefined"],
])("transactionalStore rejects the back end %j", (backend, message) => {
  expect(() => transactionalStore(backend as never)).toThrow(message)
})

it("a transactional store is shared unless its back end says that it is not", () => {
  const transact = (): never => expect.unreachable()
  expect(transactionalStore({ transact }).isShared).toBe(true)
  expect(transactionalStore({ transact, isShared: false }).isShared).toBe(false)
})
