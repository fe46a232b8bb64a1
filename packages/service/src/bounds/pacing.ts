import type { Socket } from "node:net"

/**
 * Maximum work that the connections of one peer may cause in one turn of the event loop. A call of the usual size is
 * one unit. The maximum takes less than 10 ms.
 */
const MOST_WORK = 128

/** A connection whose reading can be paused. */
export interface PacedConnection {
  /** The accepted socket. */
  readonly socket: Socket
  /** The socket on which requests arrive. Undefined until the TLS handshake is complete. */
  readonly ready: Socket | undefined
  readonly pace: PeerPace
}

/** The connections of one peer, and their work in this turn of the event loop. */
export class PeerPace {
  readonly connections: Set<PacedConnection> = new Set()
  /** Connections whose reading is paused. The first connection has waited longest. */
  readonly paused: Set<PacedConnection> = new Set()
  /** The turn to which `work` belongs. */
  turn = 0
  work = 0
  /** Number of connections to resume after this turn. */
  resumed = 1
}

/**
 * Gives each peer a share of every turn of the event loop. Node reads up to 2 MiB of a connection in one turn, which
 * may be thousands of calls. When the connections of a peer have caused enough work, none of these connections is
 * read until the next turn. Then reading resumes for one connection, then two, then four, so that other peers receive
 * their share of each turn.
 */
export class Pacing {
  #turn = 0
  #isCounting = false
  /** The peers whose connections are paused. */
  readonly #waiting = new Set<PeerPace>()

  /**
   * Adds a connection that was just accepted. The connection is paused immediately if other connections of its peer
   * are paused.
   */
  add(connection: PacedConnection): void {
    const { pace } = connection
    pace.connections.add(connection)
    if (pace.paused.size > 0) this.#pause(connection)
  }

  remove(connection: PacedConnection): void {
    const { pace } = connection
    pace.connections.delete(connection)
    pace.paused.delete(connection)
  }

  /** Counts work that a connection has caused. */
  spend(pace: PeerPace, work: number): void {
    if (pace.turn !== this.#turn) {
      pace.turn = this.#turn
      pace.work = 0
    }
    const before = pace.work
    pace.work += work
    this.#count()
    if (pace.work <= MOST_WORK || before > MOST_WORK) return
    pace.resumed = 1
    for (const connection of pace.connections) this.#pause(connection)
  }

  #count(): void {
    if (this.#isCounting) return
    this.#isCounting = true
    setImmediate(this.#endTurn)
  }

  readonly #endTurn = (): void => {
    this.#turn++
    this.#isCounting = false
    for (const pace of this.#waiting) {
      this.#resume(pace)
      if (pace.paused.size === 0) this.#waiting.delete(pace)
    }
    if (this.#waiting.size > 0) this.#count()
  }

  #pause(connection: PacedConnection): void {
    const { pace, socket } = connection
    if (pace.paused.has(connection)) return
    pace.paused.add(connection)
    this.#waiting.add(pace)
    readingOf(socket)?.readStop?.()
  }

  #resume(pace: PeerPace): void {
    let left = pace.resumed
    for (const connection of pace.paused) {
      if (left-- === 0) break
      pace.paused.delete(connection)
      // Node itself pauses a connection whose client does not read its responses, and resumes it later.
      if (connection.ready?.isPaused() !== true) readingOf(connection.socket)?.readStart?.()
    }
    pace.resumed *= 2
  }
}

/**
 * Returns the Node handle that reads from a socket. Pausing the stream would have no effect, because Node's parsers
 * read from the handle. Returns undefined if the socket has closed.
 */
function readingOf(socket: Socket): { readStop?(): void; readStart?(): void } | null | undefined {
  return (socket as { _handle?: { readStop?(): void; readStart?(): void } | null })._handle
}
