import type { Decision } from "../decision/decision.ts"
import { UNLIMITED } from "../decision/decision-record.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import type { RequestFacts } from "../request/request.ts"
import { compileTest, compileUnits } from "./callbacks.ts"
import type { DecisionEvents } from "./decision-events.ts"
import { type Held, holdInLine, type Leaving } from "./hold.ts"
import type { ParsedOptions } from "./options/parse-options.ts"
import type { LimiterParts } from "./parts.ts"
import { type Part, PreparedRequest } from "./prepared-request.ts"
import type { RulesInForce } from "./rule-set/rules-in-force.ts"

/** Prepares requests for a decision, and decides those of adapters and of `decide`. */
export class Admission<Request> {
  readonly decisionEvents: DecisionEvents<Request>
  readonly #parts: LimiterParts<Request>
  readonly #rules: RulesInForce<Request>
  /** The units that a request costs by the options, or what yields them. */
  readonly #cost: number | ((request: Request) => number)
  /** Undefined where all requests are counted. */
  readonly #skips: ((request: Request) => boolean) | undefined

  constructor(
    { enabled, skip, cost }: ParsedOptions,
    parts: LimiterParts<Request>,
    rules: RulesInForce<Request>,
    decisionEvents: DecisionEvents<Request>,
  ) {
    this.#parts = parts
    this.#rules = rules
    this.decisionEvents = decisionEvents
    this.#cost = typeof cost === "number" ? cost : compileUnits(cost, parts.warner)
    if (!enabled) this.#skips = () => true
    else if (skip !== undefined) {
      this.#skips = compileTest("skip", skip, "such a request is counted", parts.warner)
    }
  }

  /** Whether the request is counted. */
  counts(request: Request): boolean {
    return this.#skips === undefined || !this.#skips(request)
  }

  /**
   * Every call begins here. Returns what the request asks under the rules in force; undefined if it is not counted, because the app
   * skips it or has switched the limiter off. Returns a promise only while the first rules are being loaded. `cost` replaces the units
   * that the request costs by the options.
   */
  prepare(
    facts: RequestFacts,
    request: Request,
    cost: number | undefined,
    part?: Part,
  ): MaybePromise<PreparedRequest<Request> | undefined> {
    const startedMs = part?.isReportedLater === true ? undefined : this.decisionEvents.start()
    // A probe of health is skipped while rules cannot be had, too.
    if (this.#skips?.(request) === true) return undefined
    const { first } = this.#rules
    // The closure is in a method of its own: in here, it would be paid for by requests, too, that wait for nothing.
    if (first !== undefined) return this.#prepareAfter(first, facts, request, cost, part, startedMs)
    return new PreparedRequest(this.#rules, facts, request, cost ?? this.#cost, part, startedMs)
  }

  async #prepareAfter(
    first: Promise<void>,
    facts: RequestFacts,
    request: Request,
    cost: number | undefined,
    part: Part | undefined,
    startedMs: number | undefined,
  ): Promise<PreparedRequest<Request>> {
    await first
    return new PreparedRequest(this.#rules, facts, request, cost ?? this.#cost, part, startedMs)
  }

  /** Decides a request. Returns a value when the store does. */
  take(prepared: PreparedRequest<Request> | undefined): MaybePromise<Decision> {
    if (prepared === undefined) return UNLIMITED
    const { decider } = this.#parts
    const { ruleChecks, startedMs } = prepared
    const decision =
      prepared.part?.isStoreGone === true ? decider.takeWithoutStore(ruleChecks) : decider.take(ruleChecks)
    return startedMs === undefined
      ? decision
      : this.decisionEvents.told(decision, prepared.request, "decide", startedMs)
  }

  /**
   * `take`, but a request that does not fit under rules that queue is held until it does, as long and as many as they
   * say; and as long as a leaky bucket among them says. Undefined when its client has gone meanwhile: nothing stays taken.
   */
  hold(prepared: PreparedRequest<Request>, leaving: Leaving): MaybePromise<Held | undefined> {
    const { waitingRoom, warner } = this.#parts
    const { ruleSet, request, startedMs } = prepared
    if (waitingRoom.isClosed || prepared.part?.isStoreGone === true) {
      const decision = this.take(prepared)
      const held = (made: Decision): Held => ({ decision: made, ruleSet })
      return decision instanceof Promise ? decision.then(held) : held(decision)
    }
    const held = holdInLine(waitingRoom, prepared, leaving, warner)
    const tell = (made: Held | undefined): Held | undefined => {
      if (made !== undefined) this.decisionEvents.tell(made.decision, request, "hold", startedMs)
      return made
    }
    return held instanceof Promise ? held.then(tell) : tell(held)
  }
}
