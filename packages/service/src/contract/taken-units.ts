import type { Decision } from "@sluice/core"
import type { LongWork } from "../bounds/turns.ts"
import { refund } from "../deciding/checking.ts"
import type { ServiceGuard } from "../deciding/service-guards.ts"
import { refundReserved } from "./reservations.ts"

/** The units that the requests of a batch have taken. Each step of this work refunds some of these units. */
export class TakenUnits implements LongWork {
  readonly #guards: ServiceGuard[] = []
  readonly #decisions: Decision[] = []
  readonly #reservations: string[] = []

  /** Records the units of a request until the batch is answered. `reservation` contains them if it is not empty. */
  add(found: ServiceGuard, decision: Decision, reservation: string): void {
    if (!decision.allowed) return
    this.#guards.push(found)
    this.#decisions.push(decision)
    this.#reservations.push(reservation)
  }

  step(): boolean {
    const found = this.#guards.pop()
    const decision = this.#decisions.pop()
    const reservation = this.#reservations.pop()
    if (found === undefined || decision === undefined) return false
    if (reservation) refundReserved(found, reservation)
    else refund(found, decision)
    return true
  }
}
