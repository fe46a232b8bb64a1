/**
 * - learning: one call at a time, to learn from its response; more if that takes longer than a second
 * - paced: the responses contain the remaining units, and calls are spread over the time until new units come
 * - open: the responses do not contain the remaining units, so only refusals are heeded
 */
export type GateMode = "learning" | "paced" | "open"

/** The state of the calls of one key. */
export interface GateStatus {
  /** The key that the calls share. */
  readonly key: string
  /** How the next call is let go. */
  readonly mode: GateMode
  /** The dialect of the last response with rate limit headers. */
  readonly dialect: string | undefined
  /** The calls that wait in line. */
  readonly waiting: number
  /** The calls that were sent and have no response yet. */
  readonly inFlight: number
  /** The units that remained after the last response. Undefined if it does not contain them. */
  readonly remaining: number | undefined
  /** The units of a full window. Undefined if the responses do not contain them. */
  readonly quota: number | undefined
  /** The milliseconds until the next call may leave because of a refusal or an empty quota: 0 if there is none. */
  readonly blockedForMs: number
}
