import type { AlgorithmName } from "../algorithms/kinds.ts"
import type { Awaitable } from "../ground/maybe-promise.ts"
import type {
  Alignment,
  OnMissing,
  OnStoreFailure,
  ParsedThrottle,
  Penalty,
  Refill,
} from "../ground/policy.ts"
import type { ParsedRejection, RuleRejection } from "./rejection.ts"
import type { Throttle } from "./throttle.ts"

/** The requests that a rule applies to. A request must match every member that is given. */
export interface RuleMatch<Request = unknown> {
  /** Methods in any case. GET includes HEAD. */
  readonly methods?: readonly string[] | undefined
  /**
   * A path pattern: "/users/:id", "/files/*". The pattern is compared with the path of the URL and with the framework's
   * route if that is known. The comparison ignores case, a trailing slash, repeated slashes and percent encoding. An
   * encoded slash is compared as a slash and as part of its segment.
   */
  readonly path?: string | undefined
  /**
   * Accepted values by field name: `{ plan: ["free", "trial"] }`. For "ip", values are addresses and CIDRs; methods may
   * be in any case. A request without the field does not match.
   */
  readonly fields?: Readonly<Record<string, readonly string[]>> | undefined
  /**
   * Returns whether the rule applies to a request that matches the other members. This member is possible only in
   * code. If the function fails, the rule applies.
   */
  readonly when?: ((request: Request) => Awaitable<boolean>) | undefined
}

/**
 * The conditions for blocking a client that is refused too often:
 * `{ refusals: 10, within: "1 minute", for: "1 hour" }`. With `for: ["1 minute", "10 minutes", "1 hour"]`, blocks grow.
 */
export interface RulePenalty {
  /** Number of refusals by this rule after which the client is blocked: a positive whole number. */
  readonly refusals: number
  /**
   * Period in which refusals count, from the first refusal on: milliseconds or a string. Default: the rule's window.
   */
  readonly within?: number | string | undefined
  /**
   * Duration of a block, from the last counted refusal on: milliseconds or a string. An array of up to 16 durations,
   * from short to long, defines steps. Each block moves the client one step up and lasts as long as that step. Each
   * `within` without a refusal moves the client one step down. The time without a refusal starts when a block ends,
   * and again with each refusal that counts.
   */
  readonly for: number | string | readonly (number | string)[]
}

/** The limit of one client, instead of the rule's own. The client's counts stay the same when its limit changes. */
export interface RuleOverride {
  /** Quota units per window, or permits of a rule with `concurrent`: a positive whole number. */
  readonly limit: number
  /**
   * Only for "token-bucket" and "leaky-bucket": units that the client's bucket holds. Default: the rule's burst if it
   * has one, otherwise this limit.
   */
  readonly burst?: number | undefined
}

/** The calendar periods by which a rule counts. */
export interface Calendar {
  /** The period. */
  readonly per: CalendarRule["per"]
  /** The IANA name of the time zone in which days begin. */
  readonly timeZone: string
  /** The number that `anchorOf` returns for a fixed anchor, or a function whose result must be checked for each request. */
  readonly anchor: number | ((request: unknown) => unknown)
}

/** A rule that limits units per window. */
export interface RateRule<Request = unknown> {
  /**
   * Printable ASCII without double quotes and backslashes, at most 64 characters. The default consists of the field
   * and the window: "ip-1m". With `concurrent`, the default is the field and "in-flight": "ip-in-flight". For a Fastify
   * route, the default is its method and URL: "GET /search".
   */
  readonly name?: string | undefined
  /**
   * Quota units per window: a positive whole number, or in code a function that returns this number for each request.
   * Infinity means that the request is not limited. If the function fails, the latest limit above 0 that it has
   * returned applies. If it has returned no such limit, the request is refused with 503.
   */
  readonly limit: number | ((request: Request) => Awaitable<number>)
  /**
   * A string such as "1 minute" or "15m", or a number of milliseconds. Numbers below 1,000 cause a warning. In code, also
   * a function that returns the window for each request, at most 366 days. Each window has separate counters, so return
   * one of a few windows. If the function fails, the latest window that it has returned applies. Before the first, the
   * request is refused with 503.
   */
  readonly window: number | string | ((request: Request) => Awaitable<number | string>)
  /**
   * The field by which requests are counted: requests with the same value share a counter. The field is "ip",
   * "method", "route", "header:NAME", "query:NAME", "body:PATH", "param:NAME", "cookie:NAME", or a name that the
   * option `fields` reads. "service" counts all requests together. A list combines fields. The field is required in a
   * list of rules. It defaults to "ip" in an inline rule, and a stored rule without a field counts the whole service.
   * Over HTTP/2, "header:host" is the value of `:authority`.
   */
  readonly field: string | readonly string[]
  /** How a request without the field is counted or decided. Default: "ip". */
  readonly onMissing?: OnMissing | undefined
  /** How requests are counted. Default: "sliding-window". */
  readonly algorithm?: AlgorithmName | undefined
  /** Only for "fixed-window": where windows begin. Default: "epoch". */
  readonly align?: Alignment | undefined
  /**
   * Number of sub-windows, from 2 to 360 and at most the milliseconds of the window. The default for
   * "sliding-window-strict" is 60. By default, "sliding-window" uses two whole windows instead of sub-windows.
   */
  readonly buckets?: number | undefined
  /** Only for "token-bucket" and "leaky-bucket": units that the bucket holds. Default: the limit. */
  readonly burst?: number | undefined
  /** Only for "token-bucket": how the bucket refills. Default: "continuous". */
  readonly refill?: Refill | undefined
  /** How a request that does not fit is handled. Default: "hard", and `{ kind: "queue" }` for "leaky-bucket". */
  readonly throttle?: Throttle | undefined
  /**
   * True if refused requests also count, up to the limit, so that a client that continues to send requests stays
   * refused. Default: false.
   */
  readonly countRejected?: boolean | undefined
  /** Blocks a client that is refused too often. The rule needs a field. A shadow rule blocks no client. */
  readonly penalty?: RulePenalty | undefined
  /**
   * Percentages of the limit at which the event `near-limit` is emitted for a client: whole numbers from 1 to 100.
   * 100 means that no units remain. For a bucket, they are percentages of its capacity. Default: none.
   */
  readonly notify?: readonly number[] | undefined
  /**
   * Units that the rule takes for each unit of a request, or permits that it takes for each request: a positive whole
   * number. Default: 1.
   */
  readonly cost?: number | undefined
  /**
   * The unit that the rule counts, such as "tokens": 1 to 64 printable ASCII characters without double quotes and
   * backslashes. The limiter's option `units` gives the amount of each request. Default: "requests".
   */
  readonly counts?: string | undefined
  /**
   * The requests that the rule applies to. In code, a function is short for `{ when: function }`. Default: all
   * requests.
   */
  readonly match?: RuleMatch<Request> | ((request: Request) => Awaitable<boolean>) | undefined
  /** Values of the rule's own field that the rule does not count; for "ip", addresses and CIDRs. */
  readonly allow?: readonly string[] | undefined
  /** Values of the rule's own field that the rule always refuses; for "ip", addresses and CIDRs. */
  readonly deny?: readonly string[] | undefined
  /**
   * Other limits by the value of the rule's own field: `{ ann: 2, "vip-7": { limit: 500 } }`. For "ip", values are
   * addresses and CIDRs, and the narrowest range wins. A lookup takes the same time for any number of overrides.
   */
  readonly overrides?: Readonly<Record<string, number | RuleOverride>> | undefined
  /**
   * Message for a refused client: free text, or one of the three strings that add a machine-readable `retry`
   * ({@link RetryAdvice}). Those are "retry-with-exponential-backoff", "retry-with-fixed-time" and
   * "exhausted-daily-limit". Default: none.
   */
  readonly rejectionMessage?: string | undefined
  /** The response to a request that this rule refuses with 429. Default: the limiter's own option. */
  readonly rejection?: RuleRejection<Request> | undefined
  /** True if the rule decides and reports but never refuses. Default: false. */
  readonly shadow?: boolean | undefined
  /** The decision while the shared store is unavailable. Default: the limiter's own option. */
  readonly onStoreFailure?: OnStoreFailure | undefined
  /** Absent. */
  readonly per?: undefined
  /** Absent. */
  readonly timeZone?: undefined
  /** Absent. */
  readonly anchor?: undefined
  /** Absent. */
  readonly concurrent?: undefined
  /** Absent. */
  readonly hold?: undefined
}

/**
 * A rule that limits units per calendar period. It counts as "fixed-window" does, in windows that are days, weeks, months
 * or years of a time zone.
 */
export interface CalendarRule<Request = unknown>
  extends Omit<
    RateRule<Request>,
    "window" | "algorithm" | "align" | "buckets" | "burst" | "refill" | "per" | "timeZone" | "anchor"
  > {
  /** The period, instead of a window. Weeks have seven days. */
  readonly per: "day" | "week" | "month" | "year"
  /** The IANA name of the time zone in which days begin, such as "Europe/Berlin". Default: "UTC". */
  readonly timeZone?: string | undefined
  /**
   * The day on which a period begins: 1 (Monday) to 7 of a week, 1 to 31 of a month, and for a year a date such as
   * "04-01". A longer date such as "2026-01-31" or a `Date` in UTC counts with its day. In a month without this day, the
   * period begins on the last day. In code, also a function that returns the day of each request's client. If it
   * returns undefined, the default applies. If it fails, the client keeps the day that it last returned in this process.
   * Default: 1, and "01-01" for a year. A day has no anchor.
   */
  readonly anchor?:
    | number
    | string
    | Date
    | ((request: Request) => Awaitable<number | string | Date | undefined>)
    | undefined
  /** Absent. */
  readonly window?: undefined
  /** The algorithm of all calendar periods. */
  readonly algorithm?: "fixed-window" | undefined
  /** Absent. */
  readonly align?: undefined
  /** Absent. */
  readonly buckets?: undefined
  /** Absent. */
  readonly burst?: undefined
  /** Absent. */
  readonly refill?: undefined
}

/** A rule that limits the requests that are in progress at the same time. */
export interface InFlightRule<Request = unknown>
  extends Omit<
    RateRule<Request>,
    | "limit"
    | "window"
    | "counts"
    | "algorithm"
    | "align"
    | "buckets"
    | "burst"
    | "refill"
    | "countRejected"
    | "per"
    | "timeZone"
    | "anchor"
    | "concurrent"
    | "hold"
  > {
  /**
   * Requests that may be in progress at the same time: a whole number from 1 to 1,000,000, or in code a function that
   * returns this number for each request. Infinity means that the request is not limited. If the function fails, the
   * same applies as for `limit`.
   */
  readonly concurrent: number | ((request: Request) => Awaitable<number>)
  /**
   * Longest time for which a request still counts after its process has ended: a string or milliseconds, from 2 seconds
   * to 1 hour. The process of a request in progress renews this time. Default: "30 seconds".
   */
  readonly hold?: number | string | undefined
  /** Absent. */
  readonly limit?: undefined
  /** Absent. */
  readonly window?: undefined
  /** Absent. */
  readonly counts?: undefined
  /** Absent. */
  readonly algorithm?: undefined
  /** Absent. */
  readonly align?: undefined
  /** Absent. */
  readonly buckets?: undefined
  /** Absent. */
  readonly burst?: undefined
  /** Absent. */
  readonly refill?: undefined
  /** Absent. */
  readonly countRejected?: undefined
  /** Absent. */
  readonly per?: undefined
  /** Absent. */
  readonly timeZone?: undefined
  /** Absent. */
  readonly anchor?: undefined
}

/**
 * A rule in code, written by a service owner. A rule has either `limit` with `window` or `per`, or `concurrent`. `Request`
 * is the type of the requests that the limiter decides. docs/rules/rules.md explains each member with examples.
 * @example
 * ```ts
 * import { createLimiter, type Rule } from "@sluice/core"
 *
 * const rules: Rule[] = [
 *   { name: "burst", field: "ip", limit: 10, window: "1 second" },
 *   { name: "daily", field: "ip", limit: 10_000, window: "1 day", rejectionMessage: "exhausted-daily-limit" },
 *   { name: "monthly", field: "ip", limit: 100_000, per: "month", timeZone: "Europe/Berlin" },
 *   { name: "login", field: ["ip", "body:email"], limit: 5, window: "1 minute", match: { path: "/login" } },
 *   { name: "exports", field: "ip", concurrent: 2, match: { path: "/export" } },
 * ]
 * const limiter = createLimiter({ rules })
 * ```
 */
export type Rule<Request = unknown> = RateRule<Request> | CalendarRule<Request> | InFlightRule<Request>

/** A rule that can be stored or registered. Without a `field`, the rule counts the whole service. */
export type StorableRule = (
  | Omit<RateRule, "field">
  | Omit<CalendarRule, "field">
  | Omit<InFlightRule, "field">
) &
  Partial<Pick<RateRule, "field">>

/** A rule that was checked, with every default filled in. The rest of the code relies on this check. */
export interface ParsedRule {
  /** Name of the rule in printable ASCII, unique within the service. */
  readonly name: string
  /**
   * Quota units per window, or permits at a time: a positive whole number, or a function whose result must be checked for
   * each request.
   */
  readonly limit: number | ((request: unknown) => unknown)
  /**
   * Length of the window in whole milliseconds. For a rule with `concurrent`, half of its `hold`. For a rule with
   * `windowOf`, the longest window that the function may return.
   */
  readonly windowMs: number
  /** The calendar periods that are the windows. `windowMs` is then their greatest length. Absent for other windows. */
  readonly calendar?: Calendar
  /** Returns the window of each request, which must be checked. Absent if the rule has one window. */
  readonly windowOf?: (request: unknown) => unknown
  /** True if the window is a number below 1,000, for which the author may have meant seconds. Absent means false. */
  readonly lacksUnit?: boolean
  /** True if the stored rule has no `field`, so that it counts the whole service. Absent means false. */
  readonly lacksField?: boolean
  /**
   * The fields by whose combined values the rule counts, with header names in lower case. An empty array means the
   * whole service.
   */
  readonly fields: readonly string[]
  /** How a request without one of the fields is handled. */
  readonly onMissing: OnMissing
  /** How requests are counted. "in-flight" for a rule with `concurrent`. */
  readonly algorithm: AlgorithmName | "in-flight"
  /** The beginning of windows; used only by "fixed-window". */
  readonly align: Alignment
  /** Number of sub-windows; always present for "sliding-window-strict". */
  readonly buckets?: number
  /** Capacity of a bucket in units. Absent means the limit. */
  readonly burst?: number
  /** The way in which a token bucket refills. */
  readonly refill: Refill
  /** How a request that does not fit is handled. */
  readonly throttle: ParsedThrottle
  /** True if refused requests also count. */
  readonly countRejected: boolean
  /** The conditions under which a client is blocked for too many refusals. Absent means never. */
  readonly penalty?: Penalty
  /** Percentages of the limit at which a client's usage is reported, in ascending order. Absent means none. */
  readonly notify?: readonly number[]
  /** Units that the rule takes for each unit of a request. */
  readonly cost: number
  /** The unit that the rule counts. */
  readonly counts: string
  /** The requests that the rule applies to, with methods in upper case. Absent if the rule applies to every request. */
  readonly match?: RuleMatch
  /** Values of the rule's own field that the rule does not count. */
  readonly allow: readonly string[]
  /** Values of the rule's own field that the rule always refuses. */
  readonly deny: readonly string[]
  /** Other limits by the value of the rule's own field. Absent if the rule has no overrides. */
  readonly overrides?: ReadonlyMap<string, number | RuleOverride>
  /** Message for a refused client. */
  readonly rejectionMessage?: string
  /** The response to a request that the rule refuses. Absent means that the limiter's option applies. */
  readonly rejection?: ParsedRejection
  /** True if the rule decides and reports but never refuses. */
  readonly shadow: boolean
  /** The decision while the shared store is unavailable. Absent means that the limiter's option applies. */
  readonly onStoreFailure?: OnStoreFailure
}
