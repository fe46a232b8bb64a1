import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { createLimiter } from "./create-limiter.ts"

// This test has a separate file, because it takes seconds and hundreds of MB, which is too much for every mutant.

it("acquire admits 100,000 requests at 2,000 per second in 49 to 50 seconds", async () => {
  const clock = manualClock()
  const limiter = createLimiter({
    clock,
    store: memoryStore({ clock }),
    logger: { warn() {}, error() {} },
    limit: 2_000,
    window: "1 second",
    algorithm: "token-bucket",
    burst: 2_000,
    refill: "periodic",
  })
  let admitted = 0
  const admit = () => {
    admitted++
  }
  for (let i = 0; i < 100_000; i++) {
    void limiter.acquire({ remoteAddress: "192.0.2.1" }, { maxWaiting: Number.POSITIVE_INFINITY }).then(admit)
  }
  await nextTurn()
  let seconds = 0
  for (; admitted < 100_000 && seconds < 60; seconds++) {
    clock.advance(1_000)
    await nextTurn()
  }
  expect([admitted, seconds]).toEqual([100_000, 49])
}, 300_000)
