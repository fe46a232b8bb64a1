import type { Decision } from "../../decision/decision.ts"
import type { DecisionEvents } from "../../limiter/events/decision-events.ts"
import type { DecisionCall } from "../../limiter/interface/limiter.ts"
import { type ClosingResponse, onGone } from "../client-gone.ts"

/**
 * Emits one "decision" event for a request that is decided in steps. It does so when the request is refused, has passed
 * its last step, or was answered before that.
 */
export class StepReport<Request> {
  readonly #decisionEvents: DecisionEvents<Request>
  readonly #request: Request
  readonly #decisionSoFar: () => Decision
  readonly #stopListening: (() => void) | undefined
  readonly #counters: DecisionCall["counters"][number][] = []
  #durationMs = 0
  #operation: DecisionCall["operation"] = "decide"
  #isDone = false

  constructor(
    decisionEvents: DecisionEvents<Request>,
    request: Request,
    response: ClosingResponse | undefined,
    decisionSoFar: () => Decision,
  ) {
    this.#decisionEvents = decisionEvents
    this.#request = request
    this.#decisionSoFar = decisionSoFar
    this.#stopListening = response && onGone(response, () => this.#finish())
  }

  /** Adds a step. Reports the request if nothing is left to decide. */
  add(durationMs: number, counters: DecisionCall["counters"], isHeld: boolean, isLast: boolean): void {
    this.#durationMs += durationMs
    this.#counters.push(...counters)
    if (isHeld) this.#operation = "hold"
    if (isLast || !this.#decisionSoFar().allowed) this.#finish()
  }

  #finish(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#stopListening?.()
    const decision = this.#decisionSoFar()
    // The request is skipped, or no rule applies to it.
    if (decision.allowed && decision.checks.length === 0) return
    this.#decisionEvents.emit(decision, this.#request, {
      operation: this.#operation,
      durationMs: this.#durationMs,
      counters: this.#counters,
    })
  }
}
