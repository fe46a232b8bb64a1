/** What a door tells of itself. */
export interface DoorListeners {
  /** Told of what is no StatusError: a fault of ours, of which its caller learns no more than that. */
  onFault(error: unknown, path: string): void
  /** Told of each connection that is one too many. */
  onRefusedConnection(): void
}

/** How many connections a door has open at once, where nothing else is said. */
export const MOST_CONNECTIONS = 10_000
