/**
 * The outcome of a request. "failed" means that the measured store did not decide, for example because the fallback
 * decided.
 */
export type Outcome = "granted" | "refused" | "failed"

/** A limiter that decides one request of a client at a time. */
export interface Contender<Decided = unknown> {
  count(key: string): Decided | Promise<Decided>
  judge(decided: Decided): Outcome
  /** Returns the outcome for an error that `count` rejected with. */
  judgeError(error: unknown): Outcome
}

export interface Setup {
  /** Port of the Redis server that stores the counters. */
  readonly port: number
  /** The limits that apply to each request. */
  readonly limits: readonly {
    readonly limit: number
    readonly windowMs: number
    /** Whether the limit applies to all clients together. */
    readonly isOfService?: boolean
  }[]
}

/** A kind of contender, set up as its documentation recommends. */
export interface ContenderKind {
  /** The Redis commands that this kind of contender sends, without the commands that its scripts call. */
  readonly sends: readonly string[]
  create(setup: Setup): Promise<Contender>
}
