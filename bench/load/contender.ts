/** Failed: no decision of the store that is measured, such as one by the fallback. */
export type Outcome = "granted" | "refused" | "failed"

/** What decides one request of a client. */
export interface Contender<Decided = unknown> {
  count(key: string): Decided | Promise<Decided>
  judge(decided: Decided): Outcome
  /** Of what it rejects with. */
  judgeError(error: unknown): Outcome
}

export interface Setup {
  /** Of the Redis to count in. */
  readonly port: number
  /** The limits on a request: units in so many milliseconds. */
  readonly limits: readonly { readonly limit: number; readonly windowMs: number }[]
}

/** How a contender is set up, as its own page says. */
export interface ContenderKind {
  /** The commands that it sends by itself; what its scripts call is not among them. */
  readonly sends: readonly string[]
  create(setup: Setup): Promise<Contender>
}
