/** The retries that a new gate may send before its calls have earned retries, and the maximum that calls can earn. */
const [FIRST_RETRIES, MOST_RETRIES] = [10, 100]

/**
 * Bounds the retries to a share of the calls that are sent, as gRPC's proposal A6 and the SRE book advise, so that an
 * overloaded server does not receive a multiple of the usual calls.
 */
export class RetryBudget {
  readonly #share: number
  #retries = FIRST_RETRIES

  constructor(share: number) {
    this.#share = share
  }

  /** Counts a call that was sent for the first time. */
  earn(): void {
    this.#retries = Math.min(this.#retries + this.#share, MOST_RETRIES)
  }

  /** Takes a retry from the budget. Returns false if no retry is left. */
  take(): boolean {
    if (this.#retries < 1) return false
    this.#retries--
    return true
  }
}

const IDEMPOTENT = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]

/** True if a call may be sent again even if the server may have processed it (RFC 9110, section 9.2.2). */
export function isIdempotent({ method, headers }: Request): boolean {
  return IDEMPOTENT.includes(method) || headers.has("idempotency-key")
}

/** Codes of errors that end a connection before a byte of the request was sent, in Node and Bun. */
const NOT_CONNECTED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]

/**
 * True if a fetch failed before anything was sent. False in Deno and browsers, because their errors do not show this.
 */
export function hasNotConnected(error: unknown): boolean {
  const causes = [error, (error as Error | undefined)?.cause]
  return causes.some((cause) =>
    NOT_CONNECTED.includes(String((cause as { code?: unknown } | undefined)?.code)),
  )
}

/**
 * Returns the wait after the n-th attempt, counting from 0, if the response contains no wait. The wait doubles with
 * each attempt, and is jittered upward.
 */
export function backoffMs(attempt: number, firstMs: number, longestMs: number): number {
  return Math.min(firstMs * 2 ** attempt * (1 + Math.random()), longestMs)
}
