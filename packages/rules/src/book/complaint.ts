import type { InvalidRuleError, RuleSourceError } from "@sluice/core"
import type { Warner } from "@sluice/core/kit"
import { ignore } from "@sluice/core/rules"
import { after, type Timing } from "./timing.ts"

/** A lasting problem is logged again every hour, so that the engineers on duty at that time see it. */
const INTERVAL_MS = 3_600_000

/** A problem of some rules in the log. It is logged when it begins or changes, and again every hour while it lasts. */
export class Complaint {
  readonly #warner: Warner
  readonly #timing: Pick<Timing, "wait">
  #message: string | undefined
  #stopRepeating: () => void = ignore

  constructor(warner: Warner, timing: Pick<Timing, "wait">) {
    this.#warner = warner
    this.#timing = timing
  }

  /** True while the log reports a problem. */
  get isRaised(): boolean {
    return this.#message !== undefined
  }

  /** Logs the problem, unless the log already reports it. Returns whether it was logged. */
  raise(message: string, error: InvalidRuleError | RuleSourceError, isRepeated = true): boolean {
    if (message === this.#message) return false
    this.end()
    this.#message = message
    const say = () => this.#warner.say("error", "SLUICE_RULES_REJECTED", message, error)
    say()
    if (isRepeated) this.#repeat(say)
    return true
  }

  /** Logs that the problem is gone and what is in force, if there was a problem. */
  settle(message: string): void {
    if (this.#message === undefined) return
    this.end()
    this.#warner.say("warn", "SLUICE_RULES_RECOVERED", message)
  }

  /** Forgets the problem. Idempotent. */
  end(): void {
    this.#message = undefined
    this.#stopRepeating()
  }

  #repeat(say: () => void): void {
    this.#stopRepeating = after(INTERVAL_MS, this.#timing, () => {
      this.#repeat(say)
      say()
    })
  }
}
