import type { StoreOutcome } from "../../../ground/errors.ts"

/** A call to a server, and whether the server may have run it. */
export class ServerCall {
  /** An instant of the monotonic clock. */
  readonly deadlineMs: number
  #isSent = false
  #isOver = false

  constructor(withinMs: number) {
    this.deadlineMs = performance.now() + withinMs
  }

  /**
   * Notes that the command is now handed to the client, so that the server may run it. Returns false if the caller has
   * already got an error saying that nothing was sent. The command must not be sent then.
   */
  send(): boolean {
    if (this.#isOver) return false
    this.#isSent = true
    return true
  }

  /** Notes that the caller stops waiting. */
  giveUp(): void {
    this.#isOver = true
  }

  get outcome(): StoreOutcome {
    return this.#isSent ? "unknown" : "not-applied"
  }
}
