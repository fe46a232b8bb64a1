/** The ways that calls come in by. */
export type Door = "grpc" | "http"

/** What a door tells of itself. */
export interface DoorListeners {
  /**
   * Told of each call of a method when it is answered: the code of its answer, and how long that took from when its request had come.
   * Absent: no clock is read.
   */
  onAnswered?: ((path: string, code: number, durationMs: number) => void) | undefined
  /** Told of what is no StatusError: a fault of ours, of which its caller learns no more than that. */
  onFault(error: unknown, path: string): void
  /** Told of each connection that is one too many. */
  onRefusedConnection(): void
  /** Told of each caller that speaks no TLS where it has to, or whose certificate, or ours, is refused: why, and its address where that is known. */
  onFailedHandshake(reason: string, peer: string | undefined): void
}

/** How many connections a door has open at once, where nothing else is said. */
export const MOST_CONNECTIONS = 10_000
