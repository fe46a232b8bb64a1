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
