import type { Connection } from "../sockets/connection.ts"

const CHECK_MS = 1_000
/** Bytes between two checks that may belong to no call. Reading this many bytes takes up to 8 % of the time. */
const MOST_WASTED_BYTES = 1_048_576

/**
 * Closes HTTP/2 connections that send many bytes outside of calls, such as header blocks that Node refuses. Node does
 * not report such a block, and reading one takes as long as 30 calls, because a single byte can refer to a header
 * field of 4 KB (RFC 7541 section 6.1).
 */
export class WastedBytes {
  /** The bytes of each connection that belonged to no call, at the previous check. */
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
