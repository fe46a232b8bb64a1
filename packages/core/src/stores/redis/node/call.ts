import type { StoreOutcome } from "../../../ground/errors.ts"

/** A call on its way to a server, and whether the server may have carried it out. */
export class ServerCall {
  /** An instant of the monotonic clock. */
  readonly deadlineMs: number
  #isSent = false
  #isOver = false

  constructor(withinMs: number) {
    this.deadlineMs = performance.now() + withinMs
  }

  /**
   * Says that the command is handed to the client now, so that the server may carry it out whatever happens. False when the
   * caller was told already that nothing was sent: then nothing may be.
   */
  send(): boolean {
    if (this.#isOver) return false
    this.#isSent = true
    return true
  }

  /** The caller stops waiting. */
  giveUp(): void {
    this.#isOver = true
  }

  get outcome(): StoreOutcome {
    return this.#isSent ? "unknown" : "not-applied"
  }
}
