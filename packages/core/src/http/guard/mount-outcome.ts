import type { Decision } from "../../decision/decision.ts"
import { DecisionRecord, isStricter } from "../../decision/decision-record.ts"
import type { MountDecision } from "../../limiter/mount-decision.ts"
import type { HeaderLine, Rejection } from "../../limiter/options/answer-options.ts"
import type { ParsedOptions } from "../../limiter/options/parse-options.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import type { StepSet } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import { joined, nameOf } from "../headers/joined.ts"
import { type Writers, writersOf } from "./writers.ts"

const NONE: readonly never[] = []

/** How far a mount that decides a request in steps has come. */
export interface Progress {
  /** The mount. */
  readonly by: object
  readonly ruleSet: RuleSet
  /** The steps whose rules it has decided. */
  readonly steps: StepSet
  /** Undefined if nobody listens. */
  readonly report: { add(durationMs: number, isHeld: boolean, isLast: boolean): void } | undefined
}

/**
 * What one mount of a limiter has decided on a request, beside the mounts before it. Headers are written when they are asked
 * for: a gateway that asks for many decisions at once wants none.
 */
export class MountOutcome implements MountDecision {
  declare readonly limiter: { readonly options: ParsedOptions }
  declare readonly earlier: MountOutcome | undefined
  /** This mount's own decision, whether or not it binds. */
  declare own: Decision
  declare rejection?: Rejection
  /** Where a limiter is mounted twice each mount tells the status. */
  declare settled: boolean
  /** Undefined where a mount decides by all rules at once. */
  declare progress: Progress | undefined
  // No private names in here, and no fields but by the constructor: one is made for each request.
  declare private writers: Writers
  declare private lines: readonly HeaderLine[] | undefined

  constructor(
    limiter: { readonly options: ParsedOptions },
    ruleSet: RuleSet,
    own: Decision,
    earlier: MountOutcome | undefined,
    facts: RequestFacts,
    progress: Progress | undefined,
  ) {
    this.limiter = limiter
    this.earlier = earlier
    this.settled = false
    this.progress = progress
    this.own = own
    this.writers = writersOf(ruleSet, limiter.options.headers)
    this.lines = undefined
    if (own.allowed) return
    this.rejection = this.writers.rejection(own, facts.headers?.accept, limiter.options.wallClock)
  }

  /** Of all mounts so far, the decision that binds. */
  get decision(): Decision {
    const { earlier, own } = this
    return earlier !== undefined && isStricter(earlier.decision, own) ? earlier.decision : own
  }

  /** To be set on the response, in place of what an earlier mount has set under the same name. */
  get headers(): readonly HeaderLine[] {
    return this.rejection === undefined ? this.told() : this.withRejection(this.told())
  }

  /**
   * Adds what a later step of this mount has decided. `newest` is the newest outcome of the request, whose headers tell of this one. Returns
   * what the adapter has to do.
   */
  advance(later: Decision, progress: Progress, newest: MountOutcome, facts: RequestFacts): Outcome {
    const before = newest.told()
    this.own = DecisionRecord.joined(this.own, later, progress.ruleSet.names)
    this.writers = writersOf(progress.ruleSet, this.limiter.options.headers)
    this.progress = progress
    if (!later.allowed) {
      this.rejection = this.writers.rejection(this.own, facts.headers?.accept, this.limiter.options.wallClock)
    }
    for (let mount: MountOutcome | undefined = newest; mount !== undefined; mount = mount.earlier)
      mount.lines = undefined
    const { decision } = newest
    const { rejection } = this
    const headers = this.withRejection(newest.told())
    const removed = missingIn(newest.told(), before)
    return rejection === undefined
      ? { decision, headers, removed }
      : { decision, headers, removed, rejection }
  }

  /** Names of what an earlier mount has set and holds no more, to be taken off the response first. */
  get removed(): readonly string[] {
    if (this.earlier === undefined) return NONE
    return missingIn(this.told(), this.earlier.told())
  }

  /** An app that answers by itself seldom copies the headers of a refusal: it says when to come back whoever writes it. */
  private withRejection(lines: readonly HeaderLine[]): readonly HeaderLine[] {
    const { rejection } = this
    if (rejection === undefined || this.limiter.options.onRejected === undefined) return lines
    return [...lines, ...rejection.headers.filter((line) => nameOf(line) !== "Content-Type")]
  }

  /** The rate limit headers of all mounts so far. */
  private told(): readonly HeaderLine[] {
    if (this.lines === undefined) {
      const { earlier } = this
      const lines = this.writers.headers(this.own, this.limiter.options.wallClock)
      this.lines = earlier === undefined ? lines : joined(earlier.told(), lines, this.decision === this.own)
    }
    return this.lines
  }
}

/** The names of the lines before that are not among the lines now. */
function missingIn(now: readonly HeaderLine[], before: readonly HeaderLine[]): readonly string[] {
  return before.map(nameOf).filter((name) => !now.some((line) => nameOf(line) === name))
}

/** What an adapter does with a request. */
export interface Outcome {
  /** For the framework's request: of all mounts so far, the decision that binds. */
  readonly decision: Decision
  /** To be set on the response, in place of what an earlier mount has set under the same name. */
  readonly headers: readonly HeaderLine[]
  /** Names of what an earlier mount has set and holds no more, to be taken off the response first. */
  readonly removed: readonly string[]
  /** The answer, when the request is refused. */
  readonly rejection?: Rejection
}
