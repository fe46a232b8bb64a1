import type { InvalidRuleError, RuleSourceError } from "../../ground/errors.ts"
import { ignore } from "../../ground/time.ts"
import type { Warner } from "../../ground/warnings.ts"
import { sleep, type Timing } from "./timing.ts"

/** A mistake that lasts is logged again after each hour, so that whoever is on duty by then sees it. */
const INTERVAL_MS = 3_600_000

/** What the log says is wrong with some rules: it is logged when it begins or changes, and again every hour while it lasts. */
export class Complaint {
  readonly #warner: Warner
  readonly #timing: Pick<Timing, "wait">
  #message: string | undefined
  #ending = new AbortController()

  constructor(warner: Warner, timing: Pick<Timing, "wait">) {
    this.#warner = warner
    this.#timing = timing
  }

  /** Whether the log says that something is wrong. */
  get isRaised(): boolean {
    return this.#message !== undefined
  }

  /** Logs what is wrong now, unless the log says that already. Returns whether it did. */
  raise(message: string, error: InvalidRuleError | RuleSourceError, isRepeated = true): boolean {
    if (message === this.#message) return false
    this.end()
    this.#message = message
    const say = () => this.#warner.say("error", "SLUICE_RULES_REJECTED", message, error)
    say()
    this.#ending = new AbortController()
    if (isRepeated) this.#repeat(say, this.#ending.signal).catch(ignore)
    return true
  }

  /** Logs that nothing is wrong any more, and what is in force, if something was wrong. */
  settle(message: string): void {
    if (this.#message === undefined) return
    this.end()
    this.#warner.say("warn", "SLUICE_RULES_RECOVERED", message)
  }

  /** Forgets what was wrong. Idempotent. */
  end(): void {
    this.#message = undefined
    this.#ending.abort()
  }

  async #repeat(say: () => void, signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(INTERVAL_MS, signal, this.#timing)
      say()
    }
  }
}
