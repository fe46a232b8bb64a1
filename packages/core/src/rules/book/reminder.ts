import { ignore, sleep, type Timing } from "./timing.ts"

/** A mistake that lasts is logged again after each hour, so that whoever is on duty by then sees it. */
const INTERVAL_MS = 3_600_000

/** Says something again every hour until it is ended. */
export class Reminder {
  readonly #ending = new AbortController()

  constructor(say: () => void, timing: Timing) {
    this.#repeat(say, timing).catch(ignore)
  }

  /** Idempotent. */
  end(): void {
    this.#ending.abort()
  }

  async #repeat(say: () => void, timing: Timing): Promise<void> {
    for (;;) {
      await sleep(INTERVAL_MS, this.#ending.signal, timing)
      say()
    }
  }
}
