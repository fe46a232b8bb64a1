import type { AlgorithmName } from "../algorithms/kinds.ts"
import type { Alignment, OnMissing, OnStoreFailure, Refill } from "../ground/policy.ts"

/** The requests that a rule is for. Every member that is given must agree. */
export interface RuleMatch {
  /** Methods, in any case. GET covers HEAD. */
  readonly methods?: readonly string[] | undefined
  /**
   * A path pattern: "/users/:id", "/files/*". Compared without regard to case, trailing slash, repeated slashes and
   * percent encoding, against the path of the URL and against the framework's route where that is known.
   */
  readonly path?: string | undefined
  /**
   * Field name to the values that it may have: `{ plan: ["free", "trial"] }`. Of `ip`, addresses and CIDRs; methods in any case. A
   * missing field does not match.
   */
  readonly fields?: Readonly<Record<string, readonly string[]>> | undefined
}

/** What becomes of a request that does not fit into the limit. */
export type Throttle =
  /** It is refused. A leaky bucket tells how long to hold what is admitted, in `delayMs`. */
  | "hard"
  /** The same. */
  | { readonly kind: "hard" }
  /** So many percent of the limit are admitted above it and marked `overLimit`: 5 of limit 500 admits 525. */
  | {
      readonly kind: "soft"
      /** Above 0, to 1000. The units are rounded down, and at least one. */
      readonly percent: number
    }
  /** It is admitted and marked `overLimit` while there is capacity to spare. */
  | {
      readonly kind: "elastic"
      /** Units that are admitted in all, above the limit. Default: as many as are counted exactly. */
      readonly ceiling?: number | undefined
      /** Whether there is capacity to spare; only in code. Default: by the event loop of this process. */
      readonly signal?: (() => boolean) | undefined
    }
  /**
   * Adapters hold it until it fits, in the order of arrival. `decide` refuses as "hard" does. A leaky bucket holds as many
   * units as it has room for (`burst`), and refuses what does not fit.
   */
  | {
      readonly kind: "queue"
      /**
       * Requests that stand in line for one counter in this process, at most: default 100. For a leaky bucket it is a line in front of
       * the bucket, and 0 by default, so that what the bucket has no room for is refused at once.
       */
      readonly maxWaiting?: number | undefined
      /** Milliseconds that one is held, at most: default 10,000. */
      readonly maxWaitMs?: number | undefined
    }

/** When a client is blocked for having been refused too often: `{ refusals: 10, within: "1 minute", for: "1 hour" }`. */
export interface RulePenalty {
  /** So many refusals by this rule block the client: a positive whole number. */
  readonly refusals: number
  /** Milliseconds or a text, from the first of the refusals. Default: the rule's window. */
  readonly within?: number | string | undefined
  /** How long: milliseconds or a text, from the refusal that reached the number. */
  readonly for: number | string
}

/**
 * A rule in code: what a service owner writes. `Request` is what the limiter is asked about. docs/guides/rules.md explains each
 * member with examples.
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
   * Printable ASCII without double quotes and backslashes, at most 64 characters. Default from field and window: "ip-1m";
   * of a route of Fastify from its method and URL: "GET /search".
   */
  readonly name?: string | undefined
  /**
   * Quota units per window: a positive whole number, or in code a function that yields one per request; Infinity from it is no
   * limit for that request.
   */
  readonly limit: number | ((request: Request) => number)
  /** A text such as "1 minute" or "15m"; a number is milliseconds, and warned of below 1,000. */
  readonly window: number | string
  /**
   * Whose requests are counted together: "ip", "method", "route", "header:NAME", "query:NAME", "body:PATH", "param:NAME",
   * "cookie:NAME", or a name that the option `fields` reads; or "service", all requests together. A list makes a combination.
   * Required in a list. An inline rule defaults to "ip"; a stored rule without a field counts the whole service.
   */
  readonly field: string | readonly string[]
  /** What becomes of a request without the field: default "ip". */
  readonly onMissing?: OnMissing | undefined
  /** How it is counted: default "sliding-window". */
  readonly algorithm?: AlgorithmName | undefined
  /** Only for "fixed-window": where windows begin, default "epoch". */
  readonly align?: Alignment | undefined
  /**
   * Sub-windows, from 2 to 360 and no more than the window has milliseconds: for "sliding-window-strict" 60 by default, for
   * "sliding-window" two windows by default.
   */
  readonly buckets?: number | undefined
  /** Only for "token-bucket" and "leaky-bucket": units that the bucket holds. Default: the limit. */
  readonly burst?: number | undefined
  /** Only for "token-bucket": how it fills, default "continuous". */
  readonly refill?: Refill | undefined
  /** What becomes of a request that does not fit: default "hard", and for "leaky-bucket" `{ kind: "queue" }`. */
  readonly throttle?: Throttle | undefined
  /** Whether requests that it refuses count too, up to the limit: who keeps knocking stays out. Default false. */
  readonly countRejected?: boolean | undefined
  /** Blocks a client that was refused too often. Only of a rule with a field; a shadow rule blocks nobody. */
  readonly penalty?: RulePenalty | undefined
  /** Units that one request takes: a positive whole number, default 1. Multiplies the cost given by the caller. */
  readonly cost?: number | undefined
  /** Which requests the rule is for: default all. */
  readonly match?: RuleMatch | undefined
  /** Values of the rule's own field, or for `ip` addresses and CIDRs, that the rule does not count. */
  readonly allow?: readonly string[] | undefined
  /** Values of the rule's own field, or for `ip` addresses and CIDRs, that the rule always refuses. */
  readonly deny?: readonly string[] | undefined
  /**
   * Passed to a refused client: free text, or one of the three that have a machine-readable `retry`:
   * "retry-with-exponential-backoff", "retry-with-fixed-time", "exhausted-daily-limit" ({@link RetryAdvice}). Default: none.
   */
  readonly rejectionMessage?: string | undefined
  /** Decides and reports, never refuses: default false. */
  readonly shadow?: boolean | undefined
  /** What is decided when the shared store is gone. Default: the limiter's own. */
  readonly onStoreFailure?: OnStoreFailure | undefined
}

/** A rule as it may be stored or registered: without a `field` it counts the whole service. */
export type StorableRule = Omit<Rule, "field"> & Partial<Pick<Rule, "field">>
