import type { Clock } from "../../ground/clock.ts"
import type { OnStoreFailure } from "../../ground/policy.ts"
import type { Logger } from "../../ground/warnings.ts"
import type { ClientAddressOptions } from "../../request/client-address-options.ts"
import type { OnRulesMissing } from "../../rules/book/until-loaded.ts"
import type { Rule } from "../../rules/rule.ts"
import type { RuleBook } from "../../rules/rule-book.ts"
import type { RuleSource } from "../../rules/source.ts"
import type { Store } from "../../stores/store.ts"
import type { HeaderDialect, OnRejected } from "./answer-options.ts"

/** A field of the app's own, by name: a user id or a plan from its authentication. Undefined is missing. */
export type Extractor<Request> = (request: Request) => string | number | undefined

/** Every member of a rule but its cost, which a limiter reads differently; none is required here. */
export type InlineRule<Request> = {
  // Mapped from an object type, so that each member keeps the docstring that it has in Rule.
  readonly [Name in keyof Omit<Rule<Request>, "cost">]?: Omit<Rule<Request>, "cost">[Name] | undefined
}

/** What a limiter is made of. Either one inline rule (`limit`, `window` and any other member of {@link Rule}), or `rules`. */
export type LimiterOptions<Request, Response = unknown> = LimiterSettings<Request, Response> &
  LimitWithWindow<Request>

/** Requires `window` beside `limit`, and `limit` beside `window`. Neither may be undefined, such as a missing environment variable. */
export type LimitWithWindow<Request> =
  | Pick<Rule<Request>, "limit" | "window">
  | {
      /** Is left out. */
      readonly limit?: undefined
      /** Is left out too. */
      readonly window?: undefined
    }

/** Every option of a limiter. {@link LimiterOptions} also requires `limit` and `window` together. */
export interface LimiterSettings<Request, Response = unknown>
  extends InlineRule<Request>,
    ClientAddressOptions {
  /** Several rules, or where they come from: a source, or a book of one that several limiters share. */
  readonly rules?: readonly Rule<Request>[] | RuleSource | RuleBook | undefined
  /**
   * Rules that apply until those of a network source are loaded for the first time. A source that is not read when the
   * limiter is created, such as DynamoDB, needs these or `onRulesMissing`.
   */
  readonly defaultRules?: readonly Rule<Request>[] | undefined
  /**
   * What becomes of requests until the rules of a network source are loaded for the first time: "allow" admits them, "deny"
   * answers 503 with `Retry-After: 1`. Requests wait for the first load for a second at most, and not at all once a load has
   * failed. No default: a network source needs this or `defaultRules`.
   */
  readonly onRulesMissing?: OnRulesMissing | undefined
  /** Whose rules and counters: default "default". */
  readonly service?: string | number | undefined
  /** Where counters are: default a memory store of its own. It stays its maker's, who closes it. */
  readonly store?: Store | undefined
  /**
   * Fields of the app's own by name; or, where the names are not known beforehand, a function that yields what reads a
   * name, undefined for none. It is asked when rules are compiled, not for each request. Default: none.
   */
  readonly fields?:
    | Readonly<Record<string, Extractor<Request>>>
    | ((name: string) => Extractor<Request> | undefined)
    | undefined
  /** Units that a request takes, times each rule's own cost: a whole number from 0 up, or a function. Default 1. */
  readonly cost?: number | ((request: Request) => number) | undefined
  /**
   * Whether a request is not counted at all: default no. One that throws, or yields no boolean, is counted. A request that waits for the
   * first rules of a source is asked about before and after.
   */
  readonly skip?: ((request: Request) => boolean) | undefined
  /** Takes over the answer to a refused request: default a problem (RFC 9457) in JSON, or lines of text. */
  readonly onRejected?: OnRejected<Request, Response> | undefined
  /**
   * Whether a request's units are given back once its response is known: `(req, status) => status < 400` for "only
   * failures count". They are charged first, so parallel guesses cannot slip through. Default: never.
   */
  readonly refundWhen?: ((request: Request, status: number) => boolean) | undefined
  /** How an adapter writes the limits into response headers, false not at all: default "draft-11". */
  readonly headers?: HeaderDialect | false | undefined
  /** What rules without their own do when the store is gone: default "local". */
  readonly onStoreFailure?: OnStoreFailure | undefined
  /**
   * Milliseconds after which a silent store counts as gone: default 50. A decision waits as long for the store at most, and so do
   * `refund`, `settle` and `reset`.
   */
  readonly storeTimeoutMs?: number | undefined
  /** Instances that share the store and its limits: default 1. Only for what is decided while the store is gone. */
  readonly instances?: number | undefined
  /** false admits everything uncounted, for tests of the app: default true. */
  readonly enabled?: boolean | undefined
  /** Where warnings go, pino or the like: default `process.emitWarning`. */
  readonly logger?: Logger | undefined
  /**
   * What time is measured by, for tests: default the process's steady time. It is the memory store's clock too, when the
   * limiter makes that.
   */
  readonly clock?: Clock | undefined
}
