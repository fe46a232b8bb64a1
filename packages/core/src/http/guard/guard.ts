import type { InvalidOptionError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { Limiter } from "../../limiter/limiter.ts"
import type { RejectionAnswer } from "../../limiter/options/answer-options.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import type { DecisionStep } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { ClosingResponse } from "../client-gone.ts"
import type { Outcome } from "./mount-outcome.ts"
import type { GuardedRoute } from "./route-rule.ts"

/** Limiter options, or a limiter to share: several mounts then count together. */
export type GuardOptions<Request, Response = unknown> =
  | LimiterOptions<Request, Response>
  | {
      /** What `createLimiter` has made. It stays its maker's, who closes it. */
      readonly limiter: Limiter<Request>
    }

/**
 * Stands between a framework and a limiter. An adapter translates its request into facts and calls `respond`, which asks `check`, sets
 * the headers, and either goes on or sends what `answer` returns.
 */
export interface Guard<Request extends object> {
  /** The limiter behind it: to peek, to reset, to listen. */
  readonly limiter: Limiter<Request>
  /** The steps at which its rules, now or later, can be decided, in order. */
  readonly steps: readonly DecisionStep[]
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
   *
   * Without a `step`, it decides by all rules. An adapter that can decide at several steps calls it at each of `steps` instead: it decides
   * by the rules that have become decidable. When a later step refuses, what the earlier ones have taken is given back.
   */
  check(facts: RequestFacts, request: Request): MaybePromise<Outcome>
  check(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse,
    step?: DecisionStep,
  ): MaybePromise<Outcome | undefined>
  /**
   * What to send to a refused client, after the app's `onRejected`, which may have answered by then. Undefined is to
   * send nothing: the app answers by itself, now or later.
   */
  answer(outcome: Outcome, request: Request, response: unknown): MaybePromise<RejectionAnswer | undefined>
  /** Warns once that the limiter is mounted too late: the response to a refused request had begun. */
  warnMountedTooLate(): void
  /**
   * Tells the status of a response that has been sent, for `refundWhen`; not of one whose client hung up before it was
   * answered, which over HTTP/2 has a status all the same. Told again, it does nothing.
   */
  settle(request: Request, status: number): void
  /**
   * A guard for a route: the rule that is written there in place of the inline one, the rest shared, rules of a source too. A member
   * `group`, a text, has all routes of the group count together. The same guard for routes that do, which need the same rule. Where
   * another guard of the same limiter has a route with the same rule, they count together. It closes with this guard, or before it.
   * @throws {@link InvalidOptionError} with where it is written in each path; nothing has been made then
   */
  forRoute(written: unknown, route: GuardedRoute): Guard<Request>
  /** Warns of what is wrong with a route whose rule is only seen when it is asked for: nobody could catch it there. */
  warn(error: InvalidOptionError): void
  /** Lets go of all requests that are held, with 503, and holds none that come later. For a server that stops to serve. */
  drain(): void
  /**
   * The same, and closes the limiter if the guard made it; of a route's guard, only frees its rule's name, where no other mount has that.
   * Not to be asked afterwards: the name may be another's. Called again, it does nothing more.
   */
  close(): Promise<void>
}
