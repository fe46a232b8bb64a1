import type { AlgorithmName, Alignment, OnStoreFailure } from "../policy.ts"

/** What a rule counts for a request whose field is missing. */
export type OnMissing = "ip" | "skip" | "deny" | "shared"

/** The requests that a rule is for. Every member that is given must agree. */
export interface RuleMatch {
  /** Methods, in any case. GET covers HEAD. */
  readonly methods?: readonly string[] | undefined
  /**
   * A path pattern: "/users/:id", "/files/*". Compared without regard to case, trailing slash, repeated slashes and
   * percent encoding, against the path of the URL and against the framework's route where that is known.
   */
  readonly path?: string | undefined
  /** Field name to the values that it may have: `{ plan: ["free", "trial"] }`. A missing field does not match. */
  readonly fields?: Readonly<Record<string, readonly string[]>> | undefined
}

/** A rule in code: what a service owner writes. `Request` is what the limiter is asked about. */
export interface Rule<Request = unknown> {
  /** Printable ASCII without `"` and `\`, at most 64 characters. Default from field and window: "ip-1m". */
  readonly name?: string | undefined
  /** Quota units per window: a positive whole number, or in code a function that yields one per request. */
  readonly limit: number | ((request: Request) => number)
  /** Milliseconds, or a text such as "1 minute" or "15m". */
  readonly window: number | string
  /** Whose requests are counted together; a list makes a combination. Without it the whole service is one counter. */
  readonly field?: string | readonly string[] | undefined
  /** Default "ip". */
  readonly onMissing?: OnMissing | undefined
  /** Default "sliding-window". */
  readonly algorithm?: AlgorithmName | undefined
  /** Only for "fixed-window": default "epoch". */
  readonly align?: Alignment | undefined
  /** "hard", the only kind so far: what does not fit is refused. */
  readonly throttle?: "hard" | undefined
  /** Units that one request takes: a positive whole number, default 1. Multiplies the cost given by the caller. */
  readonly cost?: number | undefined
  readonly match?: RuleMatch | undefined
  /** Values of the rule's own field, or for `ip` addresses and CIDRs, that the rule does not count. */
  readonly allow?: readonly string[] | undefined
  /** Values of the rule's own field, or for `ip` addresses and CIDRs, that the rule always refuses. */
  readonly deny?: readonly string[] | undefined
  /** Passed to a refused client: free text, or one of the three that have a machine-readable `retry`. */
  readonly rejectionMessage?: string | undefined
  /** Decides and reports, never refuses. */
  readonly shadow?: boolean | undefined
  /** Default: the limiter's own. */
  readonly onStoreFailure?: OnStoreFailure | undefined
}
