/** The retries that a new gate may send before its calls have earned any, and the most that calls can earn. */
const [FIRST_RETRIES, MOST_RETRIES] = [10, 100]

/**
 * Bounds the retries to a share of the calls that are sent, as gRPC's A6 and the SRE book advise, so that a server in
 * trouble does not get a multiple of the usual calls.
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

  /** Takes a retry, if there is one left. */
  take(): boolean {
    if (this.#retries < 1) return false
    this.#retries--
    return true
  }
}

const IDEMPOTENT = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]

/** Whether a call may be sent again although the server may have processed it (RFC 9110, section 9.2.2). */
export function isIdempotent({ method, headers }: Request): boolean {
  return IDEMPOTENT.includes(method) || headers.has("idempotency-key")
}

/** Codes of errors that end a connection before a byte of the request was sent, in Node and Bun. */
const NOT_CONNECTED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]

/** Whether a fetch failed before anything was sent. The errors of Deno and browsers do not show it. */
export function hasNotConnected(error: unknown): boolean {
  const causes = [error, (error as Error | undefined)?.cause]
  return causes.some((cause) =>
    NOT_CONNECTED.includes(String((cause as { code?: unknown } | undefined)?.code)),
  )
}

/**
 * Returns the wait after the n-th attempt, n from 0, if no response contains a wait. The wait doubles, and is jittered
 * upward.
 */
export function backoffMs(attempt: number, firstMs: number, longestMs: number): number {
  return Math.min(firstMs * 2 ** attempt * (1 + Math.random()), longestMs)
}
