/** Node's own response, of HTTP/1 or HTTP/2, as far as it can be ended. */
export interface EndableResponse {
  /** Whether its headers have been sent. */
  readonly headersSent: boolean
  /** Whether it has been ended. */
  readonly writableEnded: boolean
  /** The connection that it travels by. */
  readonly socket?: {
    /** Closes the connection when all has been sent. */
    destroySoon?(): void
    /** Closes the connection at once; over HTTP/2, only the stream. */
    destroy(): unknown
  } | null
  /** False if its end has to be found by its Content-Length. Absent over HTTP/2. */
  readonly chunkedEncoding?: boolean
  /** Calls back for each error. */
  on(event: "error", listener: () => void): unknown
  /** Calls back when it has been sent. */
  once(event: "finish", listener: () => void): unknown
  /** Ends it. */
  end(): unknown
}

/**
 * Ends a response whose headers have been sent. Otherwise its client would wait forever, as nobody after the limiter handles the
 * request. Never throws.
 */
export function endBegun(response: EndableResponse): void {
  const { socket, chunkedEncoding } = response
  try {
    // An earlier handler that goes on writing gets an error event, which would end the process if nobody listened.
    response.on("error", ignore)
    // A client waits for as many bytes as Content-Length says, until the connection closes.
    if (chunkedEncoding === false) response.once("finish", () => socket?.destroySoon?.())
    // Without a callback: middleware that replaces `end`, such as compression, would take it for the last chunk.
    response.end()
  } catch {
    // What replaces `end` may throw.
    socket?.destroy()
  }
}

function ignore(): void {}
