import type { Decision } from "../decision/decision.ts"
import type { SafeEvents } from "../ground/events.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import type { DecisionCall, LimiterEvents } from "./limiter.ts"

/** Tells those who listen of decisions, and how long each took. */
export class DecisionEvents<Request> {
  readonly #events: SafeEvents<LimiterEvents<Request>>

  constructor(events: SafeEvents<LimiterEvents<Request>>) {
    this.#events = events
  }

  /** Returns the instant at which a call begins; undefined where nobody listens, as no clock is read for nobody. */
  start(): number | undefined {
    return this.#events.has("decision") ? performance.now() : undefined
  }

  /** Returns the decision, when those who listen have been told of it. */
  told(
    decision: MaybePromise<Decision>,
    request: Request,
    operation: DecisionCall["operation"],
    startedMs: number,
  ): MaybePromise<Decision> {
    const tell = (made: Decision): Decision => {
      this.tell(made, request, operation, startedMs)
      return made
    }
    return decision instanceof Promise ? decision.then(tell) : tell(decision)
  }

  /** Tells those who listen of a decision. `startedMs` is what `start` returned. */
  tell(
    decision: Decision,
    request: Request,
    operation: DecisionCall["operation"],
    startedMs: number | undefined,
  ): void {
    if (startedMs === undefined) return
    this.emit(decision, request, { operation, durationMs: performance.now() - startedMs })
  }

  emit(decision: Decision, request: Request, call: DecisionCall): void {
    this.#events.emit("decision", decision, request, call)
  }
}
