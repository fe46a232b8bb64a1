import type { Decision } from "../../decision/decision.ts"
import type { SafeEvents } from "../../ground/events.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { DecisionCall, LimiterEvents } from "../interface/limiter.ts"

/** Emits a "decision" event for each decision, with its duration. */
export class DecisionEvents<Request> {
  readonly #events: SafeEvents<LimiterEvents<Request>>

  constructor(events: SafeEvents<LimiterEvents<Request>>) {
    this.#events = events
  }

  /** Returns the time at which a call begins. Returns undefined without listeners, so that no clock is read. */
  start(): number | undefined {
    return this.#events.has("decision") ? performance.now() : undefined
  }

  /** Emits the event and then returns the decision. */
  told(
    decision: MaybePromise<Decision>,
    request: Request,
    operation: DecisionCall["operation"],
    startedMs: number,
    counters: readonly CounterKey[],
  ): MaybePromise<Decision> {
    const tell = (made: Decision): Decision => {
      this.tell(made, request, operation, startedMs, counters)
      return made
    }
    return decision instanceof Promise ? decision.then(tell) : tell(decision)
  }

  /** Emits the event for a decision. `startedMs` is what `start` returned. */
  tell(
    decision: Decision,
    request: Request,
    operation: DecisionCall["operation"],
    startedMs: number | undefined,
    counters: readonly CounterKey[],
  ): void {
    if (startedMs === undefined) return
    this.emit(decision, request, { operation, durationMs: performance.now() - startedMs, counters })
  }

  emit(decision: Decision, request: Request, call: DecisionCall): void {
    this.#events.emit("decision", decision, request, call)
  }
}
