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

  /** Whether anybody listens. */
  get isHeard(): boolean {
    return this.#events.has("decision")
  }

  /** The instant at which a call begins; undefined where nobody listens, as no clock is read for nobody. */
  start(): number | undefined {
    return this.isHeard ? performance.now() : undefined
  }

  /** The decision, when those who listen have been told of it; nothing is told where there is none. */
  told<Made extends Decision | undefined>(
    decision: MaybePromise<Made>,
    request: Request,
    operation: DecisionCall["operation"],
    startedMs: number | undefined,
  ): MaybePromise<Made> {
    return startedMs === undefined ? decision : this.#toldSince(decision, request, operation, startedMs)
  }

  #toldSince<Made extends Decision | undefined>(
    decision: MaybePromise<Made>,
    request: Request,
    operation: DecisionCall["operation"],
    startedMs: number,
  ): MaybePromise<Made> {
    const tell = (made: Made): Made => {
      if (made !== undefined) this.tell(made, request, operation, startedMs)
      return made
    }
    return decision instanceof Promise ? decision.then(tell) : tell(decision)
  }

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
