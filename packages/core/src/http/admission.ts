import type { Ask } from "../limiter/ask.ts"
import type { Decision } from "../limiter/decision.ts"
import { UNLIMITED } from "../limiter/decision-record.ts"
import type { Verdict } from "../limiter/late-decision.ts"
import type { MaybePromise } from "../stores/store.ts"
import { compileTest, compileUnits } from "./callbacks.ts"
import type { DecisionReporter } from "./decision-reporter.ts"
import { type Asked, type Held, holdInLine, type Leaving } from "./hold.ts"
import type { LimiterParts } from "./limiter-parts.ts"
import type { ParsedOptions } from "./options/parse-options.ts"
import type { RequestFacts } from "./request.ts"
import type { RuleSet } from "./rule-set/rule-set.ts"
import type { RulesInForce } from "./rules-in-force.ts"

/** Whether an ask is left for a request that has been decided by others; undefined for one that has not been decided. */
export type IsLeft = ((ask: Ask) => boolean) | undefined

/** What becomes of a request: whether it counts at all, what it asks under the rules in force, and the decision on that. */
export class Admission<Request> {
  /** The units that a request costs by the options. */
  readonly unitsOf: (request: Request) => number
  readonly #parts: LimiterParts<Request>
  readonly #reporter: DecisionReporter<Request>
  readonly #rules: RulesInForce<Request>
  /** Undefined where all requests are counted. */
  readonly #skips: ((request: Request) => boolean) | undefined

  constructor(
    { enabled, skip, cost }: ParsedOptions,
    parts: LimiterParts<Request>,
    rules: RulesInForce<Request>,
    reporter: DecisionReporter<Request>,
  ) {
    this.#parts = parts
    this.#rules = rules
    this.#reporter = reporter
    this.unitsOf = compileUnits(cost, parts.warner)
    if (!enabled) {
      this.#skips = () => true
      return
    }
    // Stryker disable next-line ConditionalExpression: what skips nobody is asked in vain
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
  asks(facts: RequestFacts, request: Request, cost: number | undefined, isLeft?: IsLeft): readonly Ask[] {
    const asks = this.ruleSet.asks(facts, request, cost ?? this.unitsOf(request))
    return isLeft === undefined ? asks : asks.filter(isLeft)
  }

  /** The decision on a request, which is the framework's own, and on its facts. A value when the store answers with one. */
  admit(
    facts: RequestFacts,
    request: Request,
    cost: number | undefined,
    isLeft?: IsLeft,
  ): MaybePromise<Decision> {
    const { first } = this.#rules
    const startedMs = this.#reporter.start()
    if (!this.counts(request)) return UNLIMITED
    return first === undefined
      ? this.#take(facts, request, cost, startedMs, isLeft)
      : this.#takeAfter(first, facts, request, cost, startedMs)
  }

  /** `admit`, once the first rules are there, for who may never look at the decision. */
  judge(facts: RequestFacts, request: Request, isLeft?: IsLeft): MaybePromise<Verdict> {
    // Stryker disable next-line ConditionalExpression: a decision that is made at once is the same
    if (this.#reporter.isHeard) return this.admit(facts, request, undefined, isLeft)
    if (!this.counts(request)) return UNLIMITED
    return this.#parts.decider.judge(this.asks(facts, request, undefined, isLeft))
  }

  /**
   * `admit`, but a request that does not fit under rules that queue is held until it does, as long and as many as they
   * say; and as long as a leaky bucket among them says. Undefined when its client has gone meanwhile: nothing stays taken.
   */
  hold(
    facts: RequestFacts,
    request: Request,
    leaving: Leaving,
    isLeft?: IsLeft,
  ): MaybePromise<Held | undefined> {
    const { ruleSet } = this
    const { waitingRoom, warner } = this.#parts
    const startedMs = this.#reporter.start()
    if (!this.counts(request)) return { decision: UNLIMITED, ruleSet }
    if (waitingRoom.isClosed) {
      const decision = this.#take(facts, request, undefined, startedMs, isLeft)
      const held = (made: Decision): Held => ({ decision: made, ruleSet })
      return decision instanceof Promise ? decision.then(held) : held(decision)
    }
    const units = this.unitsOf(request)
    const askedNow = (): Asked => ({
      asks: this.asks(facts, request, units, isLeft),
      ruleSet: this.ruleSet,
    })
    const held = holdInLine(waitingRoom, askedNow, leaving, warner)
    const tell = (made: Held | undefined): Held | undefined => {
      if (made !== undefined) this.#reporter.tell(made.decision, request, "hold", startedMs)
      return made
    }
    return held instanceof Promise ? held.then(tell) : tell(held)
  }

  async #takeAfter(
    first: Promise<void>,
    facts: RequestFacts,
    request: Request,
    cost: number | undefined,
    startedMs: number | undefined,
  ): Promise<Decision> {
    await first
    return this.#take(facts, request, cost, startedMs)
  }

  #take(
    facts: RequestFacts,
    request: Request,
    cost: number | undefined,
    startedMs: number | undefined,
    isLeft?: IsLeft,
  ): MaybePromise<Decision> {
    const decision = this.#parts.decider.take(this.asks(facts, request, cost, isLeft))
    return this.#reporter.told(decision, request, "decide", startedMs)
  }
}
