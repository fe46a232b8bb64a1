/**
 * A board on which processes exchange what they have recorded. `redisActivity()` of `@sluice/redis` is such a board in
 * Redis.
 */
export interface ActivityBoard {
  /**
   * Stores the text of a process for ten seconds, instead of its earlier text. Without a text, stores nothing. If
   * `isWatching` is true, also marks the board as watched for ten seconds. Rejects if the board cannot be reached.
   */
  exchange(process: string, text: string | undefined, isWatching: boolean): Promise<BoardState>
}

/** What a board knows of the processes. */
export interface BoardState {
  /** Whether a process has watched in the ten seconds before this call. */
  readonly isWatched: boolean
  /** Whether the board has no space for another text. */
  readonly isFull: boolean
  /** The texts of the other processes. Empty unless the caller watches. */
  readonly texts: readonly string[]
}
