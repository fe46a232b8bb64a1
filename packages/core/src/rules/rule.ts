import type { AlgorithmName } from "../algorithms/kinds.ts"
import type { Decision } from "../decision/decision.ts"
import type { Rejection, RejectionText } from "../ground/answer.ts"
import type { Awaitable } from "../ground/maybe-promise.ts"
import type { Alignment, OnMissing, OnStoreFailure, Refill } from "../ground/policy.ts"

/** The requests that a rule applies to. A request must match every member that is given. */
export interface RuleMatch<Request = unknown> {
  /** Methods in any case. GET includes HEAD. */
  readonly methods?: readonly string[] | undefined
  /**
   * A path pattern: "/users/:id", "/files/*". It is compared with the path of the URL and with the framework's route if
   * that is known. The comparison ignores case, a trailing slash, repeated slashes and percent encoding.
   */
  readonly path?: string | undefined
  /**
   * Accepted values by field name: `{ plan: ["free", "trial"] }`. For "ip", values are addresses and CIDRs; methods may
   * be in any case. A request without the field does not match.
   */
  readonly fields?: Readonly<Record<string, readonly string[]>> | undefined
  /**
   * Returns whether the rule applies to a request that matches the other members; only in code. If the function fails,
   * the rule applies.
   */
  readonly when?: ((request: Request) => Awaitable<boolean>) | undefined
}

/** How many requests adapters hold, and for how long. The defaults are those of the throttle "queue". */
export interface ThrottleQueue {
  /** Most requests that wait for one counter in this process. */
  readonly maxWaiting?: number | undefined
  /** Longest time that a request is held, in milliseconds. */
  readonly maxWaitMs?: number | undefined
}

/** How a request that does not fit into the limit is handled. */
export type Throttle =
  /** Refuses the request. For a leaky bucket, `delayMs` is how long to hold an admitted request. */
  | "hard"
  /** Same as "hard". */
  | { readonly kind: "hard" }
  /** Admits `percent` percent of the limit above it and marks them `overLimit`: 5 with limit 500 admits 525. */
  | {
      readonly kind: "soft"
      /** Above 0, at most 1000. The resulting units are rounded down; they must be at least one. */
      readonly percent: number
      /** Adapters hold the requests above that, as "queue" does. Default: none, they are refused. */
      readonly queue?: ThrottleQueue | undefined
    }
  /** Admits the request and marks it `overLimit` while there is spare capacity. */
  | {
      readonly kind: "elastic"
      /** Most units that are admitted in total; must be above the limit. Default: as many as can be counted exactly. */
      readonly ceiling?: number | undefined
      /** Returns whether there is spare capacity; only in code. Default: judges by the event loop of this process. */
      readonly signal?: (() => boolean) | undefined
      /** Adapters hold the requests that are not admitted, as "queue" does. Default: none, they are refused. */
      readonly queue?: ThrottleQueue | undefined
    }
  /**
   * Adapters hold the request until it fits, in order of arrival. `decide` refuses as "hard" does. A leaky bucket holds
   * as many units as it has room for (`burst`) and refuses the rest.
   */
  | {
      readonly kind: "queue"
      /**
       * Most requests that wait for one counter in this process. Default: 100. For a leaky bucket this line is in front
       * of the bucket. Its default is 0, so a request is refused at once when the bucket is full.
       */
      readonly maxWaiting?: number | undefined
      /** Longest time that a request is held, in milliseconds. Default: 10,000. */
      readonly maxWaitMs?: number | undefined
    }

/**
 * When to block a client that is refused too often: `{ refusals: 10, within: "1 minute", for: "1 hour" }`. With
 * `for: ["1 minute", "10 minutes", "1 hour"]`, blocks grow.
 */
export interface RulePenalty {
  /** Number of refusals by this rule after which the client is blocked: a positive whole number. */
  readonly refusals: number
  /** Period in which the refusals count, from the first one: milliseconds or a text. Default: the rule's window. */
  readonly within?: number | string | undefined
  /**
   * How long the client is blocked, from the last counted refusal: milliseconds or a text. A list of up to 16 lengths,
   * from short to long, has steps. Each block moves the client one step up and lasts as long as that step. Each
   * `within` without a refusal moves the client one step down. The time without a refusal starts when a block ends, and
   * again with each refusal that counts.
   */
  readonly for: number | string | readonly (number | string)[]
}

/**
 * A function that returns the body of the answer to one refused request: a text, or an object or a list to send as
 * JSON. `rejection` is the standard answer, with the status that will be sent.
 */
export type RejectionBody<Request = unknown> = (
  request: Request,
  rejection: Rejection,
  decision: Decision,
) => string | Readonly<Record<string, unknown>> | readonly unknown[]

/**
 * The answer to requests that are refused with 429, instead of the standard one: `{ body: { error: "slow down" } }`. The
 * headers stay, such as Retry-After.
 */
export interface RuleRejection<Request = unknown> {
  /** A whole number from 400 to 599. Default: 429. */
  readonly status?: number | undefined
  /**
   * A text, an object or a list to send as JSON, or in code a function that returns one of them. At most 16,384
   * characters. Default: a problem (RFC 9457), whose `status` is the status above.
   */
  readonly body?:
    | string
    | Readonly<Record<string, unknown>>
    | readonly unknown[]
    | RejectionBody<Request>
    | undefined
  /** The media type of the body. Default: "text/plain; charset=utf-8" for a text, otherwise "application/json". */
  readonly contentType?: string | undefined
}

/** A {@link RuleRejection} that was checked. */
export interface ParsedRejection {
  /** Absent means 429. */
  readonly status?: number
  /** The body as it is sent, or the app's function. Absent means the standard one. */
  readonly body?: RejectionText | ((request: unknown, rejection: Rejection, decision: Decision) => unknown)
  /** The media type of what the function returns. Absent means that it depends on the result. */
  readonly contentType?: string
}

/** The limit of one client, instead of the rule's own. Its counts stay the same when the limit changes. */
export interface RuleOverride {
  /** Quota units per window: a positive whole number. */
  readonly limit: number
  /**
   * Only for "token-bucket" and "leaky-bucket": units that the client's bucket holds. Default: the rule's burst if it
   * has one, otherwise this limit.
   */
  readonly burst?: number | undefined
}

/**
 * A rule in code, written by a service owner. `Request` is the type of the requests that the limiter decides.
 * docs/guides/rules.md explains each member with examples.
 * @example
 * ```ts
 * import { createLimiter, type Rule } from "@sluice/core"
 *
 * const rules: Rule[] = [
 *   { name: "burst", field: "ip", limit: 10, window: "1 second" },
 *   { name: "daily", field: "ip", limit: 10_000, window: "1 day", rejectionMessage: "exhausted-daily-limit" },
 *   { name: "login", field: ["ip", "body:email"], limit: 5, window: "1 minute", match: { path: "/login" } },
 * ]
 * const limiter = createLimiter({ rules })
 * ```
 */
export interface Rule<Request = unknown> {
  /**
   * Printable ASCII without double quotes and backslashes, at most 64 characters. The default is made from field and
   * window: "ip-1m". For a Fastify route, the default is its method and URL: "GET /search".
   */
  readonly name?: string | undefined
  /**
   * Quota units per window: a positive whole number, or in code a function that returns one for each request. Infinity
   * means that the request is not limited. If the function fails, the latest limit above 0 that it has returned applies.
   * If there is none, the request is refused with 503.
   */
  readonly limit: number | ((request: Request) => Awaitable<number>)
  /** A text such as "1 minute" or "15m", or a number of milliseconds. Numbers below 1,000 cause a warning. */
  readonly window: number | string
  /**
   * The field to count by: requests with the same value share a counter. It is "ip", "method", "route", "header:NAME",
   * "query:NAME", "body:PATH", "param:NAME", "cookie:NAME", or a name that the option `fields` reads. "service" counts
   * all requests together. A list combines fields. Required in a list of rules. An inline rule defaults to "ip"; a
   * stored rule without a field counts the whole service.
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
   * "sliding-window-strict" is 60. By default, "sliding-window" uses two windows instead.
   */
  readonly buckets?: number | undefined
  /** Only for "token-bucket" and "leaky-bucket": units that the bucket holds. Default: the limit. */
  readonly burst?: number | undefined
  /** Only for "token-bucket": how the bucket refills. Default: "continuous". */
  readonly refill?: Refill | undefined
  /** How a request that does not fit is handled. Default: "hard", and `{ kind: "queue" }` for "leaky-bucket". */
  readonly throttle?: Throttle | undefined
  /**
   * True if refused requests count too, up to the limit, so a client that keeps sending stays refused. Default: false.
   */
  readonly countRejected?: boolean | undefined
  /** Blocks a client that is refused too often. The rule needs a field. A shadow rule blocks no client. */
  readonly penalty?: RulePenalty | undefined
  /**
   * Emits the event `near-limit` when a client has used these percentages of the limit: whole numbers from 1 to 100. 100
   * means that nothing is left. For a bucket they are percentages of what it holds. Default: none.
   */
  readonly notify?: readonly number[] | undefined
  /** Units that one request takes: a positive whole number. Multiplies the cost given by the caller. Default: 1. */
  readonly cost?: number | undefined
  /** The requests that the rule applies to. In code, a function is short for `{ when: function }`. Default: all. */
  readonly match?: RuleMatch<Request> | ((request: Request) => Awaitable<boolean>) | undefined
  /** Values of the rule's own field that the rule does not count; for "ip", addresses and CIDRs. */
  readonly allow?: readonly string[] | undefined
  /** Values of the rule's own field that the rule always refuses; for "ip", addresses and CIDRs. */
  readonly deny?: readonly string[] | undefined
  /**
   * Other limits by the value of the rule's own field: `{ ann: 2, "vip-7": { limit: 500 } }`. For "ip", values are
   * addresses and CIDRs, and the narrowest one wins. A lookup takes the same time for any number of overrides.
   */
  readonly overrides?: Readonly<Record<string, number | RuleOverride>> | undefined
  /**
   * Message for a refused client: free text, or one of the three texts that add a machine-readable `retry`
   * ({@link RetryAdvice}). Those are "retry-with-exponential-backoff", "retry-with-fixed-time" and
   * "exhausted-daily-limit". Default: none.
   */
  readonly rejectionMessage?: string | undefined
  /** The answer to a request that this rule refuses with 429. Default: the limiter's own option. */
  readonly rejection?: RuleRejection<Request> | undefined
  /** True if the rule decides and reports but never refuses. Default: false. */
  readonly shadow?: boolean | undefined
  /** The decision while the shared store is unavailable. Default: the limiter's own option. */
  readonly onStoreFailure?: OnStoreFailure | undefined
}

/** A rule that can be stored or registered. Without a `field` it counts the whole service. */
export type StorableRule = Omit<Rule, "field"> & Partial<Pick<Rule, "field">>
