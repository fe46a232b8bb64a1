import type { Decision } from "../../decision/decision.ts"
import { DecisionRecord, isStricter } from "../../decision/decision-record.ts"
import type { HeaderLine, Rejection } from "../../ground/answer.ts"
import type { MountDecision } from "../../limiter/interface/mount-decision.ts"
import type { ParsedOptions } from "../../limiter/options/parse-options.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import type { StepSet } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import { joined, nameOf } from "../headers/joined.ts"
import type { StepReport } from "./step-report.ts"
import type { Writers } from "./writers.ts"

const NONE: readonly never[] = []

/** The members of a limiter's mount that decisions need. */
export interface DecidingMount {
  readonly limiter: { readonly options: ParsedOptions }
  /** Whether the app has an `onRejected` for the mount's refusals. */
  readonly asksApp: boolean
  /** Returns the functions that write headers and rejections for decisions by these rules. */
  writersFor(ruleSet: RuleSet): Writers
}

/**
 * The decision of one mount of a limiter on a request, linked to the mounts before it. Headers are only written when
 * they are read, because a gateway that requests many decisions in one call does not need them.
 */
export class MountOutcome implements MountDecision {
  declare readonly mount: DecidingMount
  declare readonly earlier: MountOutcome | undefined
  /** This mount's own decision, even if the decision of another mount binds. */
  declare own: Decision
  declare rejection?: Rejection
  /**
   * Whether the status has been reported to this mount. If a limiter is mounted twice, each mount reports the status, but
   * only the first report counts.
   */
  declare isReported: boolean
  /** The rules of the mount's latest decision. */
  declare ruleSet: RuleSet
  /** The steps whose rules the mount has decided. */
  declare steps: StepSet
  /**
   * Reports the steps as one decision. Undefined if the app does not listen to decisions, or if the mount checks all
   * rules together.
   */
  declare report: Pick<StepReport, "add"> | undefined
  // No `#private` members and no field initializers, because every request creates an instance.
  declare private writers: Writers
  declare private lines: readonly HeaderLine[] | undefined

  constructor(
    mount: DecidingMount,
    ruleSet: RuleSet,
    own: Decision,
    earlier: MountOutcome | undefined,
    facts: RequestFacts,
    request: unknown,
    steps: StepSet,
  ) {
    this.mount = mount
    this.earlier = earlier
    this.isReported = false
    this.ruleSet = ruleSet
    this.steps = steps
    this.report = undefined
    this.own = own
    this.writers = mount.writersFor(ruleSet)
    this.lines = undefined
    if (own.allowed) return
    this.refuse(facts, request)
  }

  get limiter(): DecidingMount["limiter"] {
    return this.mount.limiter
  }

  /**
   * Returns the outcome of `mount`, which is this outcome or an earlier one. Undefined if `mount` has not decided the
   * request.
   */
  of(mount: DecidingMount): MountOutcome | undefined {
    return this.mount === mount ? this : this.earlier?.of(mount)
  }

  /** Returns the strictest decision of all mounts so far. */
  get decision(): Decision {
    const { earlier, own } = this
    return earlier !== undefined && isStricter(earlier.decision, own) ? earlier.decision : own
  }

  /**
   * Returns the headers to set on the response. These headers replace headers of the same name that an earlier mount
   * has set.
   */
  get headers(): readonly HeaderLine[] {
    return this.withRejection(this.told())
  }

  /**
   * Adds the decision of a later step of this mount. `newest` is the latest outcome of the request, and its headers
   * include the headers of this outcome. Returns the instructions to the adapter.
   */
  advance(
    later: Decision,
    ruleSet: RuleSet,
    steps: StepSet,
    newest: MountOutcome,
    facts: RequestFacts,
    request: unknown,
  ): Outcome {
    const before = newest.told()
    this.own = DecisionRecord.joined(this.own, later, ruleSet.names)
    this.writers = this.mount.writersFor(ruleSet)
    this.ruleSet = ruleSet
    this.steps = steps
    if (!later.allowed) this.refuse(facts, request)
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

  /**
   * Returns the names of headers that an earlier mount has set and that are no longer valid. Remove them
   * before setting `headers`.
   */
  get removed(): readonly string[] {
    if (this.earlier === undefined) return NONE
    return missingIn(this.told(), this.earlier.told())
  }

  private refuse(facts: RequestFacts, request: unknown): void {
    const { wallClock } = this.mount.limiter.options
    this.rejection = this.writers.rejection(this.own, facts.headers?.accept, wallClock, request)
  }

  /**
   * Adds the headers of the rejection if the app has `onRejected`. An app that responds by itself seldom copies these
   * headers, but the client still needs Retry-After.
   */
  private withRejection(lines: readonly HeaderLine[]): readonly HeaderLine[] {
    const { rejection } = this
    if (rejection === undefined || !this.mount.asksApp) return lines
    return [...lines, ...rejection.headers.filter((line) => nameOf(line) !== "Content-Type")]
  }

  /** Returns the rate limit headers of all mounts so far. */
  private told(): readonly HeaderLine[] {
    if (this.lines === undefined) {
      const { earlier } = this
      const lines = this.writers.headers(this.own, this.mount.limiter.options.wallClock)
      this.lines = earlier === undefined ? lines : this.joinedTo(earlier, lines)
    }
    return this.lines
  }

  private joinedTo(earlier: MountOutcome, lines: readonly HeaderLine[]): readonly HeaderLine[] {
    return joined(earlier.told(), lines, this.decision === this.own, (line) => this.isList(nameOf(line)))
  }

  /** Whether the mounts so far append members to this header. */
  private isList(name: string): boolean {
    const isOwn = this.mount.limiter.options.headers.some(({ lists }) => lists.includes(name))
    return isOwn || this.earlier?.isList(name) === true
  }
}

/**
 * Returns the names of the rules that the limiter has checked for the request. Undefined if the limiter has not
 * decided the request.
 */
export function rulesDecidedBy(limiter: object, newest: MountOutcome): ReadonlySet<string> | undefined {
  let decided: Set<string> | undefined
  for (let mount: MountOutcome | undefined = newest; mount !== undefined; mount = mount.earlier) {
    if (mount.mount.limiter !== limiter) continue
    decided ??= new Set()
    for (const { policy } of mount.own.checks) decided.add(policy)
  }
  return decided
}

/** Returns the names in `before` that are not in `now`. */
function missingIn(now: readonly HeaderLine[], before: readonly HeaderLine[]): readonly string[] {
  return before.map(nameOf).filter((name) => !now.some((line) => nameOf(line) === name))
}

/** The instructions to an adapter for one request. */
export interface Outcome {
  /** The strictest decision of all mounts so far, for the framework's request object. */
  readonly decision: Decision
  /** Headers to set on the response. The headers replace headers of the same name that an earlier mount has set. */
  readonly headers: readonly HeaderLine[]
  /** Names of headers that an earlier mount has set and that are no longer valid. The adapter removes them first. */
  readonly removed: readonly string[]
  /** The response to a refused request; absent if the request is admitted. */
  readonly rejection?: Rejection
}
