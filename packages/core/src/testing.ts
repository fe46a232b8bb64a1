/**
 * Helps to test apps that have limiters: a clock that the test moves, and a check that an app admits exactly as many
 * requests as it should. This entry point loads no test runner.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { manualClock } from "@sluice/core/testing"
 *
 * const clock = manualClock()
 * const limiter = createLimiter({ limit: 1, window: "1 minute", clock })
 * await limiter.decide({ remoteAddress: "192.0.2.7" }) // allowed: true
 * await limiter.decide({ remoteAddress: "192.0.2.7" }) // allowed: false
 * clock.advance("2 minutes")
 * await limiter.decide({ remoteAddress: "192.0.2.7" }) // allowed: true
 * ```
 * @module @sluice/core/testing
 */

export { type ManualClock, manualClock } from "./ground/manual-clock.ts"
export { expectLimited, type TestResponse } from "./http/expect-limited.ts"
