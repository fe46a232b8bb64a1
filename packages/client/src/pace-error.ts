/** The reason why a call was not sent, as a code for programs. */
export type PaceErrorCode =
  /** The call would have to wait longer than `maxWaitMs`, or has already waited that long. */
  | "SLUICE_PACE_WAIT_TOO_LONG"
  /** `maxWaiting` calls of the same key are waiting. */
  | "SLUICE_PACE_LINE_FULL"
  /** `close()` was called. */
  | "SLUICE_PACE_CLOSED"
  /** `share.acquire` failed. `cause` is the error of `share.acquire`. */
  | "SLUICE_PACE_SHARE_FAILED"
  /** An option of `paced` or of a call is invalid. */
  | "SLUICE_INVALID_OPTION"

/** The members of a {@link PaceError}, except its code and message. */
export interface PaceErrorDetails extends Partial<Pick<PaceError, "key" | "retryAfterMs" | "detail">> {
  /** The error that caused the PaceError. */
  readonly cause?: unknown
}

/** The error of a call that was not sent, so the call can be repeated later. */
export class PaceError extends Error {
  override readonly name = "PaceError"
  /** The reason, which stays the same in later versions. */
  readonly code: PaceErrorCode
  /** The key whose calls must wait. */
  readonly key: string | undefined
  /** The milliseconds after which a call can be sent. Undefined if this time is unknown. */
  readonly retryAfterMs: number | undefined
  /**
   * The message of the rule's owner in the latest refusal of a call of this key. Undefined until its body has been
   * read.
   */
  readonly detail: string | undefined

  /** Creates an error. Only {@link paced} needs this, and tests of code that handles the error. */
  constructor(code: PaceErrorCode, message: string, details: PaceErrorDetails = {}) {
    super(message, { cause: details.cause })
    this.code = code
    this.key = details.key
    this.retryAfterMs = details.retryAfterMs
    this.detail = details.detail
  }
}
