/**
 * A fetch that reads rate limit headers and paces itself.
 * @module @sluice/client
 */

export type { PaceEvents } from "./events.ts"
export type { GateMode, GateStatus } from "./gate-status.ts"
export type { CallPace, PacedOptions } from "./options.ts"
export { PaceError, type PaceErrorCode, type PaceErrorDetails } from "./pace-error.ts"
export { type PacedFetch, paced } from "./paced.ts"
