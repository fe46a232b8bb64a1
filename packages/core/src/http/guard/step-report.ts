import type { SafeEvents } from "../../ground/events.ts"
import type { DecisionCall, LimiterEvents } from "../../limiter/interface/limiter.ts"
import type { MountDecision } from "../../limiter/interface/mount-decision.ts"
import { type ClosingResponse, onGone } from "../client-gone.ts"

/**
 * Emits one "decision" event for a request that is decided in steps. The event is emitted when the request is
 * refused, has passed its last step, or has received a response before its last step.
 */
export class StepReport<Request = unknown> {
  readonly #events: SafeEvents<LimiterEvents<Request>>
  readonly #request: Request
  readonly #mount: Pick<MountDecision, "own">
  readonly #stopListening: (() => void) | undefined
  readonly #counters: DecisionCall["counters"][number][] = []
  #durationMs = 0
  #operation: DecisionCall["operation"] = "decide"
  #isDone = false

  constructor(
    events: SafeEvents<LimiterEvents<Request>>,
    request: Request,
    response: ClosingResponse | undefined,
    mount: Pick<MountDecision, "own">,
  ) {
    this.#events = events
    this.#request = request
    this.#mount = mount
    this.#stopListening = response && onGone(response, () => this.#finish())
  }

  /** Adds a step. Reports the request if nothing is left to decide. */
  add(durationMs: number, counters: DecisionCall["counters"], isHeld: boolean, isLast: boolean): void {
    this.#durationMs += durationMs
    this.#counters.push(...counters)
    if (isHeld) this.#operation = "hold"
    if (isLast || !this.#mount.own.allowed) this.#finish()
  }

  #finish(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#stopListening?.()
    const { own } = this.#mount
    // The request is skipped, or no rule applies to it.
    if (own.allowed && own.checks.length === 0) return
    this.#events.emit("decision", own, this.#request, {
      operation: this.#operation,
      durationMs: this.#durationMs,
      counters: this.#counters,
    })
  }
}
