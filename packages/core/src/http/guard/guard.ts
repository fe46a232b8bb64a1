import type { RejectionAnswer } from "../../ground/answer.ts"
import type { InvalidOptionError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { WarningCode } from "../../ground/warnings.ts"
import type { Limiter } from "../../limiter/interface/limiter.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import type { DecisionStep } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { ClosingResponse } from "../client-gone.ts"
import type { Outcome } from "./mount-outcome.ts"
import type { GuardedRoute } from "./route-rule.ts"

/** Limiter options, or a limiter that several mounts share. Mounts that share a limiter count together. */
export type GuardOptions<Request, Response = unknown> =
  | LimiterOptions<Request, Response>
  | {
      /** A limiter made by `createLimiter`. The guard does not close it. */
      readonly limiter: Limiter<Request>
    }

/**
 * The link between a framework and a limiter. An adapter translates its request into facts and calls `respond`.
 * `respond` calls `check` and sets the headers. Then it passes the request on or sends what `answer` returns.
 */
export interface Guard<Request extends object> {
  /** The limiter behind the guard, for peeks, resets and event listeners. */
  readonly limiter: Limiter<Request>
  /** The steps at which the limiter's current or future rules can be decided, in order. */
  readonly steps: readonly DecisionStep[]
  /** Whether the adapter has to call `reportStatus` with the status of every response. */
  readonly needsStatus: boolean
  /** Whether `answer` calls the app's `onRejected`. If not, it returns the outcome's rejection immediately. */
  readonly asksApp: boolean
  /** Whether the app has set `throwOnRefusal`. Then `respond` calls `fail` of the exchange instead of `send`. */
  readonly throws: boolean
  /**
   * Decides on a request. Never throws and never rejects. Returns a value, not a promise, when the store and the app's
   * functions do.
   *
   * If a rule queues requests that do not fit, this method holds them, in order. While a request is held, the method
   * listens to Node's own `response` and its connection. If the client goes in that time, or while a function of the
   * app is pending, the outcome is undefined. Then no units have been taken, and the adapter does nothing.
   *
   * Without a `step`, the method decides by all rules. An adapter that can decide at several steps calls it at each of
   * `steps` instead. Each call decides by the rules that have become decidable. When a later step refuses, the units of
   * the earlier steps stay taken, because what their rules protect has run.
   */
  check(facts: RequestFacts, request: Request): MaybePromise<Outcome>
  check(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse,
    step?: DecisionStep,
  ): MaybePromise<Outcome | undefined>
  /**
   * Returns what to send to a refused client. Calls the app's `onRejected` first. Undefined means to send nothing,
   * because the app responds by itself, now or later, or because `hasAnswered` returns true after `onRejected`. Rejects
   * if `onRejected` throws or rejects; pass the error to the framework's error handler.
   */
  answer(
    outcome: Outcome,
    request: Request,
    response: unknown,
    hasAnswered?: () => boolean,
  ): MaybePromise<RejectionAnswer | undefined>
  /**
   * Warns once that the limiter is mounted too late: after `routes`, such as "GET /login and every other route". Without
   * `routes`, the response to a refused request had begun.
   */
  warnMountedTooLate(routes?: string): void
  /**
   * Passes the status of a sent response to `refundWhen`. Idempotent. Do not call it when the client hung up before the
   * response; over HTTP/2, even such a response has a status.
   */
  reportStatus(request: Request, status: number): void
  /**
   * Returns a guard for a route. The rule written for the route replaces the inline rule. All else is shared,
   * rules of a source included.
   *
   * The string member `group` makes all routes of the group count together. Such routes need the same rule and share
   * one guard. A route of another guard on the same limiter counts together with this one if it has the same rule. The
   * returned guard closes with this guard, or earlier.
   * @throws {@link InvalidOptionError} whose paths say where the rule is written; nothing has been created then
   */
  forRoute(written: unknown, route: GuardedRoute): Guard<Request>
  /** Warns once of an error that the app cannot catch, such as an invalid route rule that is first read in a request. */
  warn(error: {
    /** The code, which has a page in docs/errors. */
    readonly code: WarningCode
    /** The problem, and how to fix it. */
    readonly message: string
  }): void
  /** Refuses all held requests with 503 and holds no later ones. For a server that is shutting down. */
  drain(): void
  /**
   * Drains, and closes the limiter if the guard created it. Idempotent. A route's guard frees the name of its
   * rule only if no other mount uses that rule. Do not use that guard after closing, because another rule may have
   * taken the name.
   */
  close(): Promise<void>
}
