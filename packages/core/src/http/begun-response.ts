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
  } | null
  /** False if its end has to be found by its Content-Length. Absent over HTTP/2. */
  readonly chunkedEncoding?: boolean
  /** Calls back for each error. */
  on(event: "error", listener: () => void): unknown
  /** Ends it, and calls back when it has been sent. */
  end(callback: () => void): unknown
}

/**
 * Ends a response whose headers have been sent. Otherwise its client would wait forever, as nobody after the limiter handles the
 * request. Returns false if the response had been ended before.
 */
export function endBegun(response: EndableResponse): boolean {
  if (response.writableEnded) return false
  const { socket, chunkedEncoding } = response
  // An earlier handler that goes on writing gets an error event, which would end the process if nobody listened.
  response.on("error", ignore)
  response.end(() => {
    // A client waits for as many bytes as Content-Length says, until the connection closes.
    if (chunkedEncoding === false) socket?.destroySoon?.()
  })
  return true
}

function ignore(): void {}
