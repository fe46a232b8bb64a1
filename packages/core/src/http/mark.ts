import type { Decision } from "../limiter/decision.ts"
import { bindsMore } from "../limiter/decision-record.ts"
import { decisionOf, type Verdict } from "../limiter/late-decision.ts"
import { joined, nameOf } from "./headers/joined.ts"
import type { HeaderLine } from "./headers/writer.ts"
import type { ParsedOptions } from "./options/parse-options.ts"
import type { Rejection } from "./rejection.ts"
import type { RequestFacts } from "./request.ts"
import type { RuleSet } from "./rule-set/rule-set.ts"

/** Under which the marks of a request are kept on it, newest first. */
export const MARK: unique symbol = Symbol("sluice")
/** A request that may have one. */
export type Marked = { [MARK]?: Mark }
const NONE: readonly never[] = []

/** What has been decided on a request so far, of all mounts the decision that binds; undefined where nobody has. */
export function decisionOn(request: object): Decision | undefined {
  return (request as Marked)[MARK]?.decision
}

/**
 * What one mount of a limiter has decided on a request, beside the mounts before it. Headers are written when they are asked
 * for: a gateway that asks for many decisions at once wants none.
 */
export class Mark {
  declare readonly limiter: { readonly options: ParsedOptions }
  declare readonly earlier: Mark | undefined
  declare readonly rejection?: Rejection
  /** Where a limiter is mounted twice each mount tells the status. */
  declare settled: boolean
  // No private names in here, and no fields but by the constructor: one is made for each request.
  declare private readonly verdict: Verdict
  declare private readonly ruleSet: RuleSet
  declare private lines: readonly HeaderLine[] | undefined

  constructor(
    limiter: { readonly options: ParsedOptions },
    ruleSet: RuleSet,
    verdict: Verdict,
    earlier: Mark | undefined,
    facts: RequestFacts,
  ) {
    this.limiter = limiter
    this.earlier = earlier
    this.settled = false
    this.verdict = verdict
    this.ruleSet = ruleSet
    this.lines = undefined
    if (verdict.allowed === true) return
    this.rejection = ruleSet.writeRejection(verdict, facts.headers?.accept, limiter.options.wallClock)
  }

  /** This mount's own decision, whichever binds. */
  get own(): Decision {
    return decisionOf(this.verdict)
  }

  /** Of all mounts so far, the decision that binds. */
  get decision(): Decision {
    const { earlier, own } = this
    return earlier !== undefined && bindsMore(earlier.decision, own) ? earlier.decision : own
  }

  /** To be set on the response, in place of what an earlier mount has set under the same name. */
  get headers(): readonly HeaderLine[] {
    const { rejection } = this
    // An app that answers by itself seldom copies them: a refusal says when to come back whoever writes it.
    if (rejection === undefined || this.limiter.options.onRejected === undefined) return this.told()
    return [...this.told(), ...rejection.headers.filter((line) => nameOf(line) !== "Content-Type")]
  }

  /** Names of what an earlier mount has set and holds no more, to be taken off the response first. */
  get removed(): readonly string[] {
    if (this.earlier === undefined) return NONE
    const lines = this.told()
    return this.earlier
      .told()
      .map(nameOf)
      .filter((name) => !lines.some((line) => nameOf(line) === name))
  }

  /** The rate limit headers of all mounts so far. */
  private told(): readonly HeaderLine[] {
    // Stryker disable next-line ConditionalExpression: written anew they are the same
    if (this.lines === undefined) {
      const { earlier } = this
      const lines = this.ruleSet.writeHeaders(this.verdict, this.limiter.options.wallClock)
      this.lines = earlier === undefined ? lines : joined(earlier.told(), lines, this.decision === this.own)
    }
    return this.lines
  }
}
