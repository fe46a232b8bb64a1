import type { AlgorithmName, Alignment, OnStoreFailure } from "../policy.ts"

/** What a rule counts for a request whose field is missing. */
export type OnMissing = "ip" | "skip" | "deny" | "shared"

/** The requests that a rule is for. Every member that is given must agree. */
export interface RuleMatch {
  /** Methods, in any case. GET covers HEAD. */
  readonly methods?: readonly string[]
  /**
   * A path pattern: "/users/:id", "/files/*". Compared without regard to case, trailing slash, repeated slashes and
   * percent encoding, against the path of the URL and against the framework's route where that is known.
   */
  readonly path?: string
  /** Field name to the values that it may have: `{ plan: ["free", "trial"] }`. A missing field does not match. */
  readonly fields?: Readonly<Record<string, readonly string[]>>
}

/** A rule in code: what a service owner writes. `Request` is what the limiter is asked about. */
export interface Rule<Request = unknown> {
  /** Printable ASCII without `"` and `\`, at most 64 characters. Default from field and window: "ip-1m". */
  readonly name?: string
  /** Quota units per window: a positive whole number, or in code a function that yields one per request. */
  readonly limit: number | ((request: Request) => number)
  /** Milliseconds, or a text such as "1 minute" or "15m". */
  readonly window: number | string
  /** Whose requests are counted together; a list makes a combination. Without it the whole service is one counter. */
  readonly field?: string | readonly string[]
  /** Default "ip". */
  readonly onMissing?: OnMissing
  /** Default "sliding-window". */
  readonly algorithm?: AlgorithmName
  /** Only for "fixed-window": default "epoch". */
  readonly align?: Alignment
  /** "hard", the only kind so far: what does not fit is refused. */
  readonly throttle?: "hard"
  /** Units that one request takes: a positive whole number, default 1. Multiplies the cost given by the caller. */
  readonly cost?: number
  readonly match?: RuleMatch
  /** Values of the rule's own field, or for `ip` addresses and CIDRs, that the rule does not count. */
  readonly allow?: readonly string[]
  /** Values of the rule's own field, or for `ip` addresses and CIDRs, that the rule always refuses. */
  readonly deny?: readonly string[]
  /** Passed to a refused client: free text, or one of the three that have a machine-readable `retry`. */
  readonly rejectionMessage?: string
  /** Decides and reports, never refuses. */
  readonly shadow?: boolean
  /** Default: the limiter's own. */
  readonly onStoreFailure?: OnStoreFailure
}
