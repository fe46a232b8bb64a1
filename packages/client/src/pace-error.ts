/** Why a call was not sent, for programs. */
export type PaceErrorCode =
  /** The call would have waited longer than `maxWaitMs`, or has waited that long. */
  | "SLUICE_PACE_WAIT_TOO_LONG"
  /** `maxWaiting` calls of the same key are waiting. */
  | "SLUICE_PACE_LINE_FULL"
  /** `close()` was called. */
  | "SLUICE_PACE_CLOSED"
  /** `share.acquire` failed. `cause` is its error. */
  | "SLUICE_PACE_SHARE_FAILED"
  /** An option of `paced` or of a call is wrong. */
  | "SLUICE_INVALID_OPTION"

/** The members of a {@link PaceError}, besides its code and message. */
export interface PaceErrorDetails extends Partial<Pick<PaceError, "key" | "retryAfterMs" | "detail">> {
  /** The error that caused this one. */
  readonly cause?: unknown
}

/** A call was not sent, so it can be sent later. */
export class PaceError extends Error {
  override readonly name = "PaceError"
  /** The reason, which stays the same in later versions. */
  readonly code: PaceErrorCode
  /** The key whose calls have to wait. */
  readonly key: string | undefined
  /** The milliseconds after which a call can be sent, if that is known. */
  readonly retryAfterMs: number | undefined
  /** The message of the rule's owner in the last refusal of a call of this key, as soon as its body has been read. */
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
