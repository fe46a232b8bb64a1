import { ClosedError, InvalidOptionError } from "../../errors.ts"
import type { Decision } from "../../limiter/decision.ts"
import type { Verdict } from "../../limiter/late-decision.ts"
import type { MaybePromise } from "../../stores/store.ts"
import { compileTest } from "../callbacks.ts"
import type { ClosingResponse } from "../client-gone.ts"
import { createLimiter } from "../create-limiter.ts"
import type { HeaderLine } from "../headers/writer.ts"
import type { Held } from "../hold.ts"
import type { Limiter } from "../limiter.ts"
import type { LimiterOptions } from "../options/options.ts"
import type { Rejection, RejectionAnswer } from "../rejection.ts"
import type { RequestFacts } from "../request.ts"
import type { FactsReader } from "../request-facts.ts"
import { RequestLimiter } from "../request-limiter.ts"
import type { RuleSet } from "../rule-set/rule-set.ts"
import { type Answer, compileAnswer } from "./answer.ts"
import { Mark } from "./mark.ts"
import { warnCreatedInHandler, warnMountedTwice, warnSameNames } from "./mount-warnings.ts"

/** Limiter options, or a limiter to share: several mounts then count together. */
export type GuardOptions<Request> =
  | LimiterOptions<Request>
  | {
      /** What `createLimiter` has made. It stays its maker's, who closes it. */
      readonly limiter: Limiter<Request>
    }

/** What an adapter does with a request. */
export interface Outcome {
  /** For the framework's request: of all mounts so far, the decision that binds. */
  readonly decision: Decision
  /** To be set on the response, in place of what an earlier mount has set under the same name. */
  readonly headers: readonly HeaderLine[]
  /** Names of what an earlier mount has set and holds no more, to be taken off the response first. */
  readonly removed: readonly string[]
  /** The answer, when the request is refused. */
  readonly rejection?: Rejection
}

/**
 * What stands between a framework and a limiter. An adapter translates its request into facts, asks `check`, sets the
 * headers, and either goes on or sends what `answer` yields.
 */
export interface Guard<Request extends object> {
  /** The limiter behind it: to peek, to reset, to listen. */
  readonly limiter: Limiter<Request>
  /** Whether its rules, now and later, read only what is there when a request arrives, before body and handlers. */
  readonly readsArrivalOnly: boolean
  /** Whether `settle` has to be told the status of every response. */
  readonly settles: boolean
  /** Whether `answer` asks the app's `onRejected`; where it does not, it yields the outcome's rejection at once. */
  readonly asksApp: boolean
  /**
   * Decides. Never throws, never rejects; answers with a value when the store does.
   *
   * Where a rule has requests wait that do not fit, this holds them, in order. `response` is Node's own, which is listened
   * to while the request is held, as is its connection, to its end: undefined is the outcome when the client has gone meanwhile. Then
   * nothing is to be done, and nothing has been taken.
   */
  check(facts: RequestFacts, request: Request): MaybePromise<Outcome>
  check(facts: RequestFacts, request: Request, response: ClosingResponse): MaybePromise<Outcome | undefined>
  /**
   * What to send to a refused client, after the app's `onRejected`, which may have answered by then. Undefined is to
   * send nothing: the app answers by itself, now or later.
   */
  answer(outcome: Outcome, request: Request, response: unknown): MaybePromise<RejectionAnswer | undefined>
  /**
   * Tells the status of a response that has been sent, for `refundWhen`; not of one whose client hung up before it was
   * answered, which over HTTP/2 has a status all the same. Told again, it does nothing.
   */
  settle(request: Request, status: number): void
  /**
   * A guard for one route: `rule` in place of the inline rule, the rest shared, rules of a source too. Where another guard of the same
   * limiter has a route with the same rule, they count together. It closes with this guard, or before it.
   */
  forRoute(rule: object, name: string): Guard<Request>
  /** Lets go of all requests that are held, with 503, and holds none that come later. For a server that stops to serve. */
  drain(): void
  /**
   * The same, and closes the limiter if the guard made it; of a route's guard, only frees its rule's name, where no other mount has that.
   * Not to be asked afterwards: the name may be another's. Called again, it does nothing more.
   */
  close(): Promise<void>
}

/**
 * A guard for an adapter. `reader` is how the adapter reads its framework's requests, so that the limiter can be asked
 * about one that no guard has seen: `limiter.peek(req)` in a handler.
 * @throws {@link InvalidOptionError}
 */
export function createGuard<Request extends object>(
  options: GuardOptions<Request>,
  reader?: FactsReader,
): Guard<Request> {
  const guard = isShared(options)
    ? new LimiterGuard(sharedLimiter(options), nothing)
    : ownGuard(createLimiter(options) as RequestLimiter<Request>)
  if (reader !== undefined) guard.limiter.readFactsWith(reader)
  return guard
}

function nothing(): void {}

function ownGuard<Request extends object>(limiter: RequestLimiter<Request>): LimiterGuard<Request> {
  return new LimiterGuard(limiter, () => limiter.close())
}

type Shared<Request> = Extract<GuardOptions<Request>, { readonly limiter: unknown }>

function isShared<Request>(options: GuardOptions<Request>): options is Shared<Request> {
  return typeof options === "object" && options !== null && "limiter" in options
}

function sharedLimiter<Request>(options: Shared<Request>): RequestLimiter<Request> {
  const problems = Object.keys(options)
    .filter((name) => name !== "limiter")
    .map((path) => ({
      path,
      message: "is given together with limiter",
      accepted: "options of the limiter itself",
    }))
  if (!(options.limiter instanceof RequestLimiter)) {
    problems.push({ path: "limiter", message: "is not a limiter", accepted: "what createLimiter() yields" })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems)
  return options.limiter as RequestLimiter<Request>
}

/** What has been decided on a request so far, of all mounts the decision that binds; undefined where nobody has. */
export function decisionOn(request: object): Decision | undefined {
  return (request as { [MARK]?: Mark })[MARK]?.decision
}

/** Under which the marks of a request are kept on it, newest first. */
const MARK = Symbol("sluice")
const NONE: readonly never[] = []

class LimiterGuard<Request extends object> implements Guard<Request> {
  readonly limiter: RequestLimiter<Request>
  readonly settles: boolean
  readonly asksApp: boolean
  /** What becomes of the limiter when the guard closes: a shared one stays. */
  readonly #leave: () => void | Promise<void>
  readonly #routes = new Set<LimiterGuard<Request>>()
  readonly #isRoute: boolean
  /** Shared with the guards of its routes. */
  readonly #draining: AbortController
  readonly #answer: Answer
  readonly #refunds: (request: Request, status: number) => boolean
  #createdInThisTurn = true
  #closed = false

  constructor(
    limiter: RequestLimiter<Request>,
    leave: () => void | Promise<void>,
    draining?: AbortController,
  ) {
    this.limiter = limiter
    this.settles = limiter.options.refundWhen !== undefined
    this.#leave = leave
    this.#isRoute = draining !== undefined
    this.#draining = draining ?? new AbortController()
    const { onRejected, refundWhen } = limiter.options
    this.asksApp = onRejected !== undefined
    this.#answer = compileAnswer(onRejected, limiter.warner)
    this.#refunds = compileTest("refundWhen", refundWhen, "the units stay taken", limiter.warner)
    // A server gets no request in the turn in which the app is put together: who does was made by a request.
    queueMicrotask(() => {
      this.#createdInThisTurn = false
    })
  }

  get readsArrivalOnly(): boolean {
    return this.limiter.readsArrivalOnly
  }

  check(facts: RequestFacts, request: Request): MaybePromise<Outcome>
  check(facts: RequestFacts, request: Request, response: ClosingResponse): MaybePromise<Outcome | undefined>
  check(
    facts: RequestFacts,
    request: Request,
    response?: ClosingResponse,
  ): MaybePromise<Outcome | undefined> {
    if (this.#createdInThisTurn) warnCreatedInHandler(this.limiter.options.logger)
    const earlier = (request as { [MARK]?: Mark })[MARK]
    if (this.#hasDecided(earlier)) {
      warnMountedTwice(this.limiter.warner, this.limiter.ruleSet.names)
      return { decision: (earlier as Mark).decision, headers: NONE, removed: NONE }
    }
    // Closures are in methods of their own: one in here would be paid for by requests, too, that wait for nothing.
    const { firstRules } = this.limiter
    if (firstRules !== undefined) return this.#checkAfter(firstRules, facts, request, response)
    // The rules may be others when the store has answered: a decision is told by those that it was made on.
    const { ruleSet } = this.limiter
    if (ruleSet.holds) return this.#hold(facts, request, response, earlier)
    const verdict = this.limiter.admission.judge(facts, request)
    return verdict instanceof Promise
      ? this.#later(verdict, ruleSet, facts, request, earlier)
      : this.#outcome(verdict, ruleSet, facts, request, earlier)
  }

  answer(outcome: Outcome, request: Request, response: unknown): MaybePromise<RejectionAnswer | undefined> {
    return this.#answer(outcome.rejection as Rejection, request, outcome.decision, response)
  }

  settle(request: Request, status: number): void {
    for (let mark = (request as { [MARK]?: Mark })[MARK]; mark !== undefined; mark = mark.earlier) {
      if (mark.limiter !== this.limiter || mark.settled) continue
      mark.settled = true
      if (!this.#refunds(request, status)) continue
      // A store that is gone keeps the units until their window has passed: the safe side.
      this.limiter.refund(mark.own).catch(() => undefined)
    }
  }

  forRoute(rule: object, name: string): Guard<Request> {
    if (this.#closed) throw new ClosedError("The guard has been closed.")
    const limiter = this.limiter.forRoute(rule, name)
    const leave = (): void => {
      this.#routes.delete(guard)
      this.limiter.leaveRoute(limiter)
    }
    const guard = new LimiterGuard(limiter, leave, this.#draining)
    this.#routes.add(guard)
    return guard
  }

  drain(): void {
    this.#draining.abort()
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    // One route that goes lets nobody go who is held elsewhere.
    if (!this.#isRoute) this.drain()
    for (const route of this.#routes) await route.close()
    await this.#leave()
  }

  async #checkAfter(
    firstRules: Promise<void>,
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
  ): Promise<Outcome | undefined> {
    await firstRules
    return this.check(facts, request, response as ClosingResponse)
  }

  #hold(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    earlier: Mark | undefined,
  ): MaybePromise<Outcome | undefined> {
    const outcomeOf = (held: Held | undefined) =>
      held && this.#outcome(held.decision, held.ruleSet, facts, request, earlier)
    const held = this.limiter.admission.hold(facts, request, { response, draining: this.#draining.signal })
    return held instanceof Promise ? held.then(outcomeOf) : outcomeOf(held)
  }

  async #later(
    verdict: Promise<Verdict>,
    ruleSet: RuleSet,
    facts: RequestFacts,
    request: Request,
    earlier: Mark | undefined,
  ): Promise<Outcome> {
    return this.#outcome(await verdict, ruleSet, facts, request, earlier)
  }

  #hasDecided(newest: Mark | undefined): boolean {
    for (let mark = newest; mark !== undefined; mark = mark.earlier) {
      if (mark.limiter === this.limiter) return true
    }
    return false
  }

  /** What was decided, kept on the request for the mounts that come after. */
  #outcome(
    verdict: Verdict,
    ruleSet: RuleSet,
    facts: RequestFacts,
    request: Request,
    earlier: Mark | undefined,
  ): Outcome {
    const mark = new Mark(this.limiter, ruleSet, verdict, earlier, facts)
    // Stryker disable next-line ConditionalExpression: beside no other mount there is nothing to warn of
    if (earlier !== undefined) warnSameNames(this.limiter.warner, mark)
    ;(request as { [MARK]?: Mark })[MARK] = mark
    return mark
  }
}
