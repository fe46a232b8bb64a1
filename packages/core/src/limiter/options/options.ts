import type { Clock } from "../../ground/clock.ts"
import type { Awaitable } from "../../ground/maybe-promise.ts"
import type { OnStoreFailure } from "../../ground/policy.ts"
import type { Logger } from "../../ground/warnings.ts"
import type { ClientAddressOptions } from "../../request/client-address-options.ts"
import type { LiveRules, OnRulesMissing } from "../../rules/live-rules.ts"
import type { RuleRejection } from "../../rules/rejection.ts"
import type { CalendarRule, InFlightRule, RateRule, Rule } from "../../rules/rule.ts"
import type { Store } from "../../stores/store.ts"
import type { OnRejected } from "./answer-options.ts"
import type { HeadersOption } from "./header-formats.ts"

/**
 * A function that reads a field of the app's own, such as a user id or a plan. The field is missing if the function
 * returns undefined or fails, or if its promise does not settle within `callbackTimeoutMs`.
 */
export type Extractor<Request> = (request: Request) => Awaitable<string | number | undefined>

/** Every member of a rule except `cost`, which has another type in a limiter's options. All members are optional here. */
export type InlineRule<Request> = {
  // Mapped from an object type, so that each member keeps its docstring from Rule.
  readonly [Name in keyof Omit<
    RateRule<Request>,
    "cost" | "per" | "timeZone" | "anchor" | "concurrent" | "hold"
  >]?: RateRule<Request>[Name] | undefined
} & {
  readonly [Name in keyof Pick<CalendarRule<Request>, "per" | "timeZone" | "anchor">]?:
    | CalendarRule<Request>[Name]
    | undefined
} & {
  readonly [Name in keyof Pick<InFlightRule<Request>, "concurrent" | "hold">]?:
    | InFlightRule<Request>[Name]
    | undefined
}

/**
 * The options of a limiter: either one inline rule (`limit` with `window` or `per`, or `concurrent`, and any other member of
 * {@link Rule}), or `rules`.
 */
export type LimiterOptions<Request, Response = unknown> = LimiterSettings<Request, Response> & LimitWithWindow

/**
 * A type that requires `limit` with either `window` or `per`. None of them may be undefined, for example because of a
 * missing environment variable.
 */
export type LimitWithWindow =
  | {
      /** Not undefined. */
      readonly limit: NonNullable<unknown>
      /** Not undefined. */
      readonly window: NonNullable<unknown>
    }
  | {
      /** Not undefined. */
      readonly limit: NonNullable<unknown>
      /** Not undefined. */
      readonly per: NonNullable<unknown>
    }
  | {
      /** Absent. */
      readonly limit?: undefined
      /** Absent, too. */
      readonly window?: undefined
      /** Absent, too. */
      readonly per?: undefined
    }

/** Every option of a limiter. {@link LimiterOptions} also requires `limit` and `window` together. */
export interface LimiterSettings<Request, Response = unknown>
  extends InlineRule<Request>,
    ClientAddressOptions {
  /**
   * A list of rules, or rules that may change: `fileRules(…)`, `dynamoDBRules(…)`, or a rule book that several limiters
   * share. For a `RuleSource` of your own, pass `liveRules(source)` of `@sluice/rules`.
   */
  readonly rules?: readonly Rule<Request>[] | LiveRules | undefined
  /**
   * Rules that apply until the first load of a network source. A source that is not read when the limiter is created,
   * such as DynamoDB, needs these rules or `onRulesMissing`.
   */
  readonly defaultRules?: readonly Rule<Request>[] | undefined
  /**
   * Treatment of requests until the first load of a network source. "allow" admits them, and "deny" sends a 503
   * response with `Retry-After: 1`. Before that, requests wait at most a second for the load, or not at all once a
   * load has failed. No default.
   */
  readonly onRulesMissing?: OnRulesMissing | undefined
  /** The service whose rules and counters are used. Default: "default". */
  readonly service?: string | number | undefined
  /** The store of the counters. Default: a new memory store. If the app passes a store, the app also closes it. */
  readonly store?: Store | undefined
  /**
   * Fields of the app's own, by name. If the names are not known in advance, `fields` is a function that takes a name
   * and returns the function that reads this field, or undefined. The outer function is called when rules are
   * compiled, not per request. Default: none.
   */
  readonly fields?:
    | Readonly<Record<string, Extractor<Request>>>
    | ((name: string) => Extractor<Request> | undefined)
    | undefined
  /**
   * Whether stores, records and events get a keyed hash of the value that a rule counts by. Default: only for fields
   * such as `header:authorization`, `cookie:sid` and `api_key`.
   */
  readonly hashKeys?: boolean | undefined
  /**
   * The key of the hashes: a random string, the same in each process. A change of the key starts new counters.
   * Default: the service's name, with which an attacker could guess hashed values.
   */
  readonly hashSecret?: string | undefined
  /**
   * Units that a request takes, times each rule's own cost: 0 or a positive whole number, or a function of the request.
   * Default: 1. If the function fails, the request takes 1 unit. If the function returns more than can be counted
   * exactly, such as Infinity, the request is always refused.
   */
  readonly cost?: number | ((request: Request) => Awaitable<number>) | undefined
  /**
   * Units by name, each with how many a request takes: `{ tokens: (request) => estimate(request.body) }`. Rules count
   * them with `counts: "tokens"`. A value is 0 or a positive whole number, or a function that returns it, called only
   * if a rule of its unit applies. If the function fails or returns undefined, the request takes 1. If the names are not
   * known in advance, `units` is a function that takes a name and returns such a value, or undefined. "requests" is built
   * in, and `cost` is short for `units.requests`. Default: none.
   */
  readonly units?:
    | Readonly<Record<string, number | ((request: Request) => Awaitable<number | undefined>)>>
    | ((unit: string) => number | ((request: Request) => Awaitable<number | undefined>) | undefined)
    | undefined
  /**
   * The order in which requests wait in line, for rules that queue and for `acquire`: a whole number from -1,000 to
   * 1,000, or a function of the request that returns one, not a promise. A higher priority goes first, and requests of
   * the same priority are served in order of arrival. Requests of a low priority may wait as long as others of a higher
   * one arrive. Default: 0, also if the function fails.
   */
  readonly priority?: number | ((request: Request) => number) | undefined
  /**
   * Whether a request is not counted at all. Default: every request is counted. If the function fails or does not
   * return a boolean, the request is counted. The function is called first, even before the rules have loaded.
   */
  readonly skip?: ((request: Request) => Awaitable<boolean>) | undefined
  /**
   * Milliseconds that a decision waits for each promise of `skip`, `cost`, `units`, `fields`, `limit`, `concurrent` and
   * `match`. After that time, the function has failed. The time is measured by `clock` if that clock can wait. Default:
   * 1,000.
   */
  readonly callbackTimeoutMs?: number | undefined
  /**
   * The response to requests that are refused with 429, for rules without their own `rejection`. Default: problem
   * details (RFC 9457) as JSON, or lines of text.
   */
  readonly rejection?: RuleRejection<Request> | undefined
  /** Takes over the response to a refused request. Default: the response of `rejection`, or the standard response. */
  readonly onRejected?: OnRejected<Request, Response> | undefined
  /**
   * Whether a request's units are refunded once its response is known. `(req, status) => status < 400` makes only
   * failures count. Units are charged before the response is known, so parallel guesses of a password cannot bypass
   * the limit. Default: never.
   */
  readonly refundWhen?: ((request: Request, status: number) => boolean) | undefined
  /** The formats of the limits in response headers: `["draft-11", "legacy"]`, or false. Default: "draft-11". */
  readonly headers?: HeadersOption | undefined
  /** The behavior of rules without their own `onStoreFailure` when the store is unavailable. Default: "local". */
  readonly onStoreFailure?: OnStoreFailure | undefined
  /**
   * Milliseconds after which a store that does not respond counts as unavailable. Default: 50. A decision waits for
   * the store at most this long, and so do `refund`, `settle` and `reset`. The first decisions of a process wait at
   * most twice as long if Redis responds.
   */
  readonly storeTimeoutMs?: number | undefined
  /** Number of instances that share the store and its limits. Used only while the store is unavailable. Default: 1. */
  readonly instances?: number | undefined
  /** False admits every request uncounted, for tests of the app. Default: true. */
  readonly enabled?: boolean | undefined
  /** The logger for warnings, such as pino. Default: `process.emitWarning`. */
  readonly logger?: Logger | undefined
  /**
   * The clock, for tests. Default: a steady clock of the process. The limiter's own memory store uses the same clock.
   */
  readonly clock?: Clock | undefined
}
