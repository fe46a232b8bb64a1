import type { Decision } from "../../decision/decision.ts"
import type { Reservation } from "../../decision/reservation.ts"
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
 * `respond` calls `check` and sets the headers. Then `respond` passes the request on, or sends the response that
 * `answer` returns.
 */
export interface Guard<Request extends object> {
  /** The limiter behind the guard, for peeks, resets and event listeners. */
  readonly limiter: Limiter<Request>
  /** The limiter's reservations, for adapters that pass them to callers. */
  readonly reservations: {
    /** Moves what the decision took into a text, which is accepted for `lifetimeMs`. */
    reserve(decision: Decision, lifetimeMs: number): Reservation
    /**
     * Settles a reservation. Resolves with "repeated" if it was settled before, and with "late" if it is too old.
     * Rejects as `limiter.settleReservation` does, but accepts unknown units.
     */
    settle(
      text: string,
      settlement: {
        /** The used units. Units that are not named stay as they were taken. */
        readonly used: ReadonlyMap<string, number>
        /** True if everything is refunded. */
        readonly refund: boolean
      },
    ): Promise<"repeated" | "late" | undefined>
    /** Renews the permits of a reservation. Resolves and rejects as `settle` does. */
    renew(text: string): Promise<Reservation | "repeated" | "late">
  }
  /** The steps at which the limiter's current or future rules can be checked, in order. */
  readonly steps: readonly DecisionStep[]
  /** Whether the adapter has to call `reportStatus` with the status of every response. */
  readonly needsStatus: boolean
  /** Whether `answer` calls the app's `onRejected`. If false, `answer` returns the outcome's rejection immediately. */
  readonly asksApp: boolean
  /** Whether the app has set `throwOnRefusal`. If so, `respond` calls the exchange's `fail` instead of its `send`. */
  readonly throws: boolean
  /**
   * Decides on a request. Never throws and never rejects. Returns a value instead of a promise if the store and the
   * app's functions return values.
   *
   * If a rule queues requests that exceed its limit, this method holds them in order of arrival. While a request is
   * held, the method listens to Node's own `response` and its connection. If the client disconnects in that time, or
   * while a function of the app is pending, the outcome is undefined. In that case this call has taken no units, and
   * the adapter does nothing.
   *
   * Without a `step`, the method checks all rules. An adapter that can decide at several steps calls it at each of
   * `steps` instead. Each call checks the rules that can be checked from that step on. If a later step refuses the
   * request, the units of earlier steps stay taken, because the code that their rules protect has already run.
   */
  check(facts: RequestFacts, request: Request): MaybePromise<Outcome>
  check(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse,
    step?: DecisionStep,
  ): MaybePromise<Outcome | undefined>
  /**
   * Returns the response to send to a refused client. Calls the app's `onRejected` first. Returns undefined if
   * nothing must be sent, because the app responds by itself, now or later, or because `hasAnswered` returns true
   * after `onRejected`. Rejects if `onRejected` throws or rejects; pass the error to the framework's error handler.
   */
  answer(
    outcome: Outcome,
    request: Request,
    response: unknown,
    hasAnswered?: () => boolean,
  ): MaybePromise<RejectionAnswer | undefined>
  /**
   * Warns once that the limiter is mounted too late, namely after `routes`, for example "GET /login and every other
   * route". Without `routes`, warns that a response had begun before its request was refused.
   */
  warnMountedTooLate(routes?: string): void
  /**
   * Passes the status of a sent response to `refundWhen`. Idempotent. Do not call it if the client hung up before the
   * response was sent. Over HTTP/2, even such a response has a status.
   */
  reportStatus(request: Request, status: number): void
  /** Whether the request holds permits of rules with `concurrent`, so that the adapter has to call `release`. */
  holdsPermits(request: Request): boolean
  /**
   * Releases the permits of the request at all mounts and steps of the limiter. Call it when the response has been sent
   * or the client has hung up. Idempotent.
   */
  release(request: Request): void
  /**
   * Returns a guard for a route. The rule written for the route replaces the inline rule. The route shares everything
   * else with this guard, including the rules of a source.
   *
   * The string member `group` makes all routes of the group count together. Such routes need the same rule and share
   * one guard. A route of another guard on the same limiter counts together with this route if both have the same
   * rule. The returned guard closes with this guard, or earlier.
   * @throws {@link InvalidOptionError} whose paths say where the rule is written; nothing has been created then
   */
  forRoute(written: unknown, route: GuardedRoute): Guard<Request>
  /**
   * Returns a guard that checks the rules of this guard, except the named rules. A name without a rule is ignored,
   * because a source may add the rule later. The returned guard ends with this guard, so it need not be closed.
   */
  without(rules: readonly string[]): Guard<Request>
  /**
   * Warns once about an error that the app cannot catch, such as an invalid route rule that is first read in a
   * request.
   */
  warn(error: {
    /** The warning's code, which has a page in docs/errors. */
    readonly code: WarningCode
    /** The problem, and how to fix it. */
    readonly message: string
  }): void
  /** Refuses all held requests with 503, and holds no later requests. Call it when the server shuts down. */
  drain(): void
  /**
   * Drains the guard, and closes the limiter if the guard created it. Idempotent. A route's guard frees the name of
   * its rule only if no other mount uses that rule. Do not use that guard after closing, because another rule may
   * have taken the name.
   */
  close(): Promise<void>
}
