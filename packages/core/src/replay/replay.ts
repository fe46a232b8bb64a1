import type { Decision } from "../decision/decision.ts"
import type { RequestFacts } from "../request/request.ts"
import type { ParsedRule } from "../rules/rule.ts"
import type { Check } from "../stores/store.ts"

/** A request with the time of its arrival. */
export interface ReplayRequest extends RequestFacts {
  /** Time of arrival in epoch milliseconds. Fractions of a millisecond are dropped. */
  readonly atMs: number
  /** Units that the request costs. Default: 1. */
  readonly cost?: number | undefined
}

/**
 * The verdict of the rules on a request. The object is reused: every call of `offer` returns the same object with new
 * values. Read the verdict before the next call.
 */
export interface ReplayVerdict {
  /** Whether the request is admitted. */
  readonly allowed: boolean
  /** Names of the enforced rules that refuse the request. */
  readonly refusedBy: readonly string[]
  /** Names of the shadow rules that would have refused the request. */
  readonly shadowedBy: readonly string[]
  /** Milliseconds for which a leaky bucket delays the request. 0 for other rules. */
  readonly delayMs: number
  /** The rules that apply to the request, in their order, with the counter and the cost of each. */
  readonly checks: readonly Check[]
  /** The client's address, or its network for IPv6. Undefined if the request has no address. */
  readonly client: string | undefined
  /** Returns the client's address, even if `client` is a network. Undefined if the request has no address. */
  address(): string | undefined
  /**
   * Returns the decision as `Limiter.decide` would. The decision is built by the first call, and further calls return
   * the same object.
   */
  decision(): Decision
}

/** A replay of requests. The replay counts from the first request on. */
export interface Replay {
  /** The rules, with every default. Elastic throttling is replayed as hard throttling. */
  readonly rules: readonly ParsedRule[]
  /**
   * Decides a request at its time, and counts it.
   * @throws {@link InvalidOptionError} if `atMs` is invalid or earlier than in the call before, if `cost` is invalid, or
   * if a function in `fields` or in a rule returns a promise.
   */
  offer(request: ReplayRequest): ReplayVerdict
  /**
   * The rules that could not be applied to some requests, because these requests lack a field that `onlyFields` does
   * not list, or because no request has a method or a target that `match` could read. Rules with `concurrent` are
   * never applied, because a replay does not know when requests end. A rule of this list refused nothing here, although
   * it might have refused these requests in a running app.
   */
  readonly notJudged: readonly UnjudgedRule[]
  /** Number of counters that were evicted while they still had an effect. If the number is not 0, raise `maxKeys`. */
  readonly evictions: number
}

/** A rule that could not be applied to some requests. */
export interface UnjudgedRule {
  /** Name of the rule. */
  readonly rule: string
  /**
   * The field that the requests lack, as written in rules. "method" stands for `match.methods`, "path" for
   * `match.path`, and "concurrent" for the end of the requests.
   */
  readonly field: string
  /** Number of requests that lack the field. */
  readonly requests: number
}
