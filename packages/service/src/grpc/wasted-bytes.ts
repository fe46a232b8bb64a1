import type { Connection } from "../sockets/connection.ts"

const CHECK_MS = 1_000
/** Bytes between two checks that may be part of no call. Reading them takes up to 8 % of the time. */
const MOST_WASTED_BYTES = 1_048_576

/**
 * Ends HTTP/2 connections that send much more than their calls, such as header blocks that Node refuses. Node does not
 * report these, and reading one takes as long as 30 calls. A byte of it can refer to a header field of 4 KB (RFC 7541
 * section 6.1).
 */
export class WastedBytes {
  /** The bytes that each connection had read, and had used for calls, at the last check. */
  readonly #wasted = new Map<Connection, number>()
  #timer: NodeJS.Timeout | undefined

  follow(connection: Connection): void {
    this.#wasted.set(connection, 0)
    connection.socket.once("close", () => this.#wasted.delete(connection))
    this.#timer ??= setInterval(() => this.#check(), CHECK_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #check(): void {
    for (const [connection, before] of this.#wasted) {
      const wasted = (connection.ready?.bytesRead ?? 0) - connection.usedBytes
      if (wasted - before > MOST_WASTED_BYTES) connection.endAbuse()
      else this.#wasted.set(connection, wasted)
    }
  }
}
