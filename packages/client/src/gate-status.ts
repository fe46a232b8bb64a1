/**
 * - learning: one call at a time is sent, to learn from its response; more calls follow after a second without it
 * - paced: the responses contain the remaining units, so calls are spread over the time until the next reset
 * - open: the responses do not contain the remaining units, so only refusals slow calls down
 */
export type GateMode = "learning" | "paced" | "open"

/** The state of the calls of one key. */
export interface GateStatus {
  /** The key that the calls share. */
  readonly key: string
  /** How the next call is released. */
  readonly mode: GateMode
  /** The dialect of the last response with rate limit headers. */
  readonly dialect: string | undefined
  /** Number of calls that wait in line. */
  readonly waiting: number
  /** Number of calls that were sent and have no response yet. */
  readonly inFlight: number
  /** The units that remained after the last response. Undefined if this response does not contain them. */
  readonly remaining: number | undefined
  /** The units of a full window. Undefined if the responses do not contain them. */
  readonly quota: number | undefined
  /**
   * The milliseconds until the next call may leave because of a refusal or an exhausted quota; 0 if neither blocks
   * calls.
   */
  readonly blockedForMs: number
}
