import type { Outcome } from "@sluice/core"
import { refund } from "../deciding/checking.ts"
import type { ServiceGuard } from "../deciding/service-guards.ts"
import type { LongWork } from "../turns.ts"

/** The units that the requests of a batch have taken. As a work, it refunds them. */
export class TakenUnits implements LongWork {
  readonly #guards: ServiceGuard[] = []
  readonly #outcomes: Outcome[] = []

  /** Remembers what a request has taken, until the batch is answered. */
  add(found: ServiceGuard, outcome: Outcome): void {
    if (!outcome.decision.allowed) return
    this.#guards.push(found)
    this.#outcomes.push(outcome)
  }

  step(): boolean {
    const found = this.#guards.pop()
    const outcome = this.#outcomes.pop()
    if (found === undefined || outcome === undefined) return false
    refund(found, outcome)
    return true
  }
}
