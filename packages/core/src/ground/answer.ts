/** One response header line: field name and value. */
export type HeaderLine = readonly [name: string, value: string]

/** The response to a refused client, without the rate limit headers, which are added to it. */
export interface RejectionAnswer {
  /** A whole number from 200 to 599. */
  readonly status: number
  /**
   * Names and values. If a name occurs several times, only the last line is sent; for `Set-Cookie`, all lines are sent.
   */
  readonly headers: readonly HeaderLine[]
  /** The body as text. Content-Length is the body's length in bytes. */
  readonly body: string
}

/** The response to a refused client, unless the app's `onRejected` returns another response. */
export interface Rejection extends RejectionAnswer {
  /**
   * 429, or the status in the option `rejection`. 400 if the request lacks a field. 503 if the store is unavailable
   * and the rule refuses requests then.
   */
  readonly status: number
  /** Cache-Control and Content-Type, and Retry-After if the request can succeed later. */
  readonly headers: readonly HeaderLine[]
  /**
   * The body in the option `rejection`. By default, a problem (RFC 9457) in JSON, or plain text for a client that
   * does not accept JSON.
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
 * Returns a string unchanged, and any other value as JSON. The media type of a string gets a charset, because bodies
 * are sent in UTF-8. Throws for a value that JSON cannot represent.
 */
export function rejectionText(value: unknown, contentType?: string): RejectionText {
  const text = typeof value === "string" ? value : JSON.stringify(value)
  if (text === undefined) throw new TypeError("JSON cannot represent the value")
  const type = contentType ?? (text === value ? "text/plain" : "application/json")
  const lacksCharset = /^text\//i.test(type) && !/;\s*charset=/i.test(type)
  return { text, contentType: lacksCharset ? `${type}; charset=utf-8` : type }
}
