/**
 * The outcome of a request. "failed" means that the measured store did not decide, for example because the fallback
 * did.
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
  /** Port of the Redis that holds the counters. */
  readonly port: number
  /** The limits that apply to each request. */
  readonly limits: readonly {
    readonly limit: number
    readonly windowMs: number
    /** Whether it limits all clients together. */
    readonly isOfService?: boolean
  }[]
}

/** A kind of contender, set up as its documentation recommends. */
export interface ContenderKind {
  /** The Redis commands that it sends, without the commands that its scripts call. */
  readonly sends: readonly string[]
  create(setup: Setup): Promise<Contender>
}
