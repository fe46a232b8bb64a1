import type { Decision } from "@sluice/core"
import type { LongWork } from "../bounds/turns.ts"
import { refund } from "../deciding/checking.ts"
import type { ServiceGuard } from "../deciding/service-guards.ts"

/** The units that the requests of a batch have taken. Each step of this work refunds some of these units. */
export class TakenUnits implements LongWork {
  readonly #guards: ServiceGuard[] = []
  readonly #decisions: Decision[] = []

  /** Records the units of a request until the batch is answered. */
  add(found: ServiceGuard, decision: Decision): void {
    if (!decision.allowed) return
    this.#guards.push(found)
    this.#decisions.push(decision)
  }

  step(): boolean {
    const found = this.#guards.pop()
    const decision = this.#decisions.pop()
    if (found === undefined || decision === undefined) return false
    refund(found, decision)
    return true
  }
}
