import type { Decision } from "../decision/decision.ts"
import { UNLIMITED } from "../decision/decision-record.ts"
import { type Ask, RULES_MISSING } from "../decision/rule-check.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import type { RequestFacts } from "../request/request.ts"
import { compileTest, compileUnits } from "./callbacks.ts"
import type { DecisionEvents } from "./decision-events.ts"
import { type Asked, type Held, holdInLine, type Leaving } from "./hold.ts"
import type { ParsedOptions } from "./options/parse-options.ts"
import type { LimiterParts } from "./parts.ts"
import type { RuleSet } from "./rule-set/rule-set.ts"
import type { RulesInForce } from "./rule-set/rules-in-force.ts"
import { ALL_STEPS, type StepSet } from "./rule-set/steps.ts"

/** Which rules to decide a request by; undefined for all of them. */
export interface Part {
  readonly steps: StepSet
  /** Whether a check is left for a request that other mounts have decided. Undefined if none has. */
  readonly isLeft: ((ask: Ask) => boolean) | undefined
  /** True if an earlier step has waited for the store without an answer: a request waits for it once. */
  readonly isStoreGone?: boolean
  /** True if the caller reports the decision, together with those of the other steps. */
  readonly isReportedLater?: boolean
}

/** What becomes of a request: whether it counts at all, what it asks under the rules in force, and the decision on that. */
export class Admission<Request> {
  /** The units that a request costs by the options. */
  readonly unitsOf: (request: Request) => number
  readonly #parts: LimiterParts<Request>
  readonly decisionEvents: DecisionEvents<Request>
  readonly #rules: RulesInForce<Request>
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
    this.unitsOf = compileUnits(cost, parts.warner)
    if (!enabled) {
      this.#skips = () => true
      return
    }
    if (skip !== undefined) this.#skips = compileTest("skip", skip, "such a request is counted", parts.warner)
  }

  get ruleSet(): RuleSet {
    return this.#rules.current
  }

  /** Whether it is counted; who skips it, or has switched the limiter off, lets it go on. */
  counts(request: Request): boolean {
    return this.#skips === undefined || !this.#skips(request)
  }

  /**
   * What it asks under the rules in force, or under those that are left for it; `cost` in place of the units that it costs by the
   * options.
   */
  asks(facts: RequestFacts, request: Request, cost: number | undefined, part?: Part): readonly Ask[] {
    const asks = this.ruleSet.asks(facts, request, cost ?? this.unitsOf(request), part?.steps ?? ALL_STEPS)
    return part?.isLeft === undefined || asks === RULES_MISSING ? asks : asks.filter(part.isLeft)
  }

  /** Returns whether other mounts have decided the request by all rules of the part. */
  leavesNothing(facts: RequestFacts, request: Request, part: Part): boolean {
    if (part.isLeft === undefined) return false
    const asks = this.asks(facts, request, undefined, part)
    return asks.length === 0 && asks !== RULES_MISSING
  }

  /** Decides a request, which is the framework's own. Returns a value when the rules are there and the store answers with one. */
  admit(
    facts: RequestFacts,
    request: Request,
    cost: number | undefined,
    part?: Part,
  ): MaybePromise<Decision> {
    const { first } = this.#rules
    const startedMs = part?.isReportedLater === true ? undefined : this.decisionEvents.start()
    if (!this.counts(request)) return UNLIMITED
    return first === undefined
      ? this.#take(facts, request, cost, startedMs, part)
      : first.then(() => this.#take(facts, request, cost, startedMs, part))
  }

  /**
   * `admit`, but a request that does not fit under rules that queue is held until it does, as long and as many as they
   * say; and as long as a leaky bucket among them says. Undefined when its client has gone meanwhile: nothing stays taken.
   */
  hold(facts: RequestFacts, request: Request, leaving: Leaving, part?: Part): MaybePromise<Held | undefined> {
    const { ruleSet } = this
    const { waitingRoom, warner } = this.#parts
    const startedMs = part?.isReportedLater === true ? undefined : this.decisionEvents.start()
    if (!this.counts(request)) return { decision: UNLIMITED, ruleSet }
    if (waitingRoom.isClosed || part?.isStoreGone === true) {
      const decision = this.#take(facts, request, undefined, startedMs, part)
      const held = (made: Decision): Held => ({ decision: made, ruleSet })
      return decision instanceof Promise ? decision.then(held) : held(decision)
    }
    const units = this.unitsOf(request)
    const askedNow = (): Asked => ({
      asks: this.asks(facts, request, units, part),
      ruleSet: this.ruleSet,
    })
    const held = holdInLine(waitingRoom, askedNow, leaving, warner)
    const tell = (made: Held | undefined): Held | undefined => {
      if (made !== undefined) this.decisionEvents.tell(made.decision, request, "hold", startedMs)
      return made
    }
    return held instanceof Promise ? held.then(tell) : tell(held)
  }

  #take(
    facts: RequestFacts,
    request: Request,
    cost: number | undefined,
    startedMs: number | undefined,
    part?: Part,
  ): MaybePromise<Decision> {
    const asks = this.asks(facts, request, cost, part)
    const { decider } = this.#parts
    const decision = part?.isStoreGone === true ? decider.takeWithoutStore(asks) : decider.take(asks)
    return this.decisionEvents.told(decision, request, "decide", startedMs)
  }
}
