/**
 * Replays requests with known times under a set of rules, such as the requests in an access log or in a unit test.
 * @example
 * ```ts
 * import { createReplay } from "@sluice/core/replay"
 *
 * const replay = createReplay({ rules: [{ field: "ip", limit: 2, window: "1 minute" }] })
 * const at = (second: number) => replay.offer({ remoteAddress: "192.0.2.7", atMs: second * 1_000 }).allowed
 * const verdicts = [at(0), at(1), at(2), at(200)] // true, true, false, true
 * ```
 * @module @sluice/core/replay
 */

export { createReplay } from "./replay/create-replay.ts"
export type { ReplayOptions } from "./replay/options.ts"
export type { Replay, ReplayRequest, ReplayVerdict, UnjudgedRule } from "./replay/replay.ts"
