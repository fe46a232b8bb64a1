/** One response header line: field name and value. */
export type HeaderLine = readonly [name: string, value: string]

/** The response that is sent to a refused client, besides the rate limit headers. */
export interface RejectionAnswer {
  /** A whole number from 200 to 599. */
  readonly status: number
  /** Names and values. If a name occurs several times, the last line counts; for `Set-Cookie`, all lines do. */
  readonly headers: readonly HeaderLine[]
  /** The body as text. Its length is sent in bytes. */
  readonly body: string
}

/** The response to a refused client that is sent unless the app's `onRejected` returns another one. */
export interface Rejection extends RejectionAnswer {
  /**
   * 429, or the status of the option `rejection`. 400 if the request lacks a field. 503 if the store is unavailable and
   * the rule fails closed.
   */
  readonly status: number
  /** Retry-After if the request can succeed later, Cache-Control and Content-Type. */
  readonly headers: readonly HeaderLine[]
  /**
   * The body of the option `rejection`. By default, a problem (RFC 9457) as JSON text, or lines of text for a client
   * that does not accept JSON.
   */
  readonly body: string
}

/** A body as it is sent, with its media type. */
export interface RejectionText {
  /** The body, which is sent in UTF-8. */
  readonly text: string
  /** The media type: "text/plain; charset=utf-8". */
  readonly contentType: string
}

/**
 * Returns a string as it is, and any other value as JSON. The media type of a string gets a charset, because bodies are
 * sent in UTF-8. Throws for a value that JSON cannot represent.
 */
export function rejectionText(value: unknown, contentType?: string): RejectionText {
  const text = typeof value === "string" ? value : JSON.stringify(value)
  if (text === undefined) throw new TypeError("JSON cannot represent the value")
  const type = contentType ?? (text === value ? "text/plain" : "application/json")
  const lacksCharset = /^text\//i.test(type) && !/;\s*charset=/i.test(type)
  return { text, contentType: lacksCharset ? `${type}; charset=utf-8` : type }
}
