import type { Store, StoreResult } from "../stores/store.ts"
import type { Decision, PolicyCheck, Refusal } from "./decision.ts"
import type { RuleCheck } from "./rule-check.ts"

/** Who decides, by what a store answers. */
export interface DecisionMaker {
  readonly store: Store
}

/** What was taken for a decision and from which store, so that it can be given back. */
export interface Receipt {
  /** Who has decided, and gives it back. */
  readonly by: DecisionMaker
  /** Where it was taken, which was another one while that of who decides was gone. */
  readonly store: Store
  readonly ruleChecks: readonly RuleCheck[]
  readonly answer: StoreResult
}

/** The decision on a request that no rule applies to. */
export const UNLIMITED: Decision = Object.freeze({
  allowed: true,
  policy: "",
  limit: Number.POSITIVE_INFINITY,
  remaining: Number.POSITIVE_INFINITY,
  cost: 0,
  retryAfterMs: 0,
  resetAfterMs: 0,
  delayMs: 0,
  overLimit: false,
  degraded: false,
  shadowed: Object.freeze([]),
  checks: Object.freeze([]),
})

/** How long a client is told to wait if the service fails closed: nobody knows how long the outage will take. */
export const RETRY_WHEN_CLOSED_MS = 1_000

/** The decision on a request that is refused because no rules have been loaded yet. */
export const DENIED_WITHOUT_RULES: Decision = Object.freeze({
  ...UNLIMITED,
  allowed: false,
  limit: 0,
  remaining: 0,
  retryAfterMs: RETRY_WHEN_CLOSED_MS,
  degraded: true,
  refusal: "store-failure",
})

const NONE: readonly string[] = Object.freeze([])

/** What a check and the decision on no check have in common. */
type Binding = PolicyCheck | typeof UNLIMITED

/** The decision that some checks amount to. It carries its receipt unseen: no copy of it can be refunded. */
export class DecisionRecord implements Decision {
  declare readonly allowed: boolean
  declare readonly policy: string
  declare readonly limit: number
  declare readonly remaining: number
  declare readonly cost: number
  declare readonly retryAfterMs: number
  declare readonly resetAfterMs: number
  declare readonly delayMs: number
  declare readonly overLimit: boolean
  declare readonly degraded: boolean
  declare readonly refusal?: Refusal
  declare readonly rejectionMessage?: string
  declare readonly shadowed: readonly string[]
  declare readonly checks: readonly PolicyCheck[]
  #receipt: Receipt | undefined
  #parts: readonly Decision[] | undefined

  /** `receipt` is undefined when nothing was taken. */
  constructor(checks: readonly PolicyCheck[], degraded: boolean, receipt: Receipt | undefined) {
    // Nearly always there is one, and it binds.
    const [first] = checks
    const isOne = checks.length === 1 && first?.shadow === false
    const binding: Binding = (isOne ? first : bindingCheck(checks)) ?? UNLIMITED
    this.allowed = binding.allowed
    this.policy = binding.policy
    this.limit = binding.limit
    // Undefined only if nobody read the counter, and then another rule binds.
    this.remaining = binding.remaining ?? 0
    this.cost = receipt === undefined ? 0 : binding.cost
    this.retryAfterMs = binding.retryAfterMs
    this.resetAfterMs = binding.resetAfterMs
    let { delayMs, overLimit } = binding
    if (checks.length > 1 && binding.allowed) {
      for (const check of checks) {
        if (check.shadow) continue
        delayMs = Math.max(delayMs, check.delayMs)
        if (check.overLimit) overLimit = true
      }
    }
    this.delayMs = delayMs
    this.overLimit = overLimit
    this.degraded = degraded
    this.shadowed = isOne ? NONE : shadowedOf(checks)
    this.checks = checks
    if (binding.refusal !== undefined) this.refusal = binding.refusal
    if (binding.rejectionMessage !== undefined) this.rejectionMessage = binding.rejectionMessage
    this.#receipt = receipt
  }

  /**
   * Returns the decision that two decisions on one request amount to, which were made one after the other by different rules; `names` has
   * the rules in order. When the later one refuses, what the earlier one has taken is given back, so the joined decision carries nothing
   * of it.
   */
  static joined(earlier: Decision, later: Decision, names: readonly string[]): Decision {
    if (later.checks.length === 0 && later.allowed) return earlier
    if (earlier.checks.length === 0 || later.checks.length === 0) return later
    const { allowed } = later
    const before = allowed ? earlier.checks : earlier.checks.map(untaken)
    const checks = [...before, ...later.checks].sort(
      (one, other) => names.indexOf(one.policy) - names.indexOf(other.policy),
    )
    const record = new DecisionRecord(checks, earlier.degraded || later.degraded, undefined)
    const { cost } = earlier.policy === record.policy ? earlier : later
    Object.assign(record, { cost: allowed ? cost : 0 })
    record.#parts = allowed ? [earlier, later] : [later]
    return record
  }

  /** Returns the decisions that carry what this one has taken: those that it was joined from, or itself. */
  static partsOf(decision: Decision): readonly Decision[] {
    const parts = #parts in decision ? decision.#parts : undefined
    return parts?.flatMap(DecisionRecord.partsOf) ?? [decision]
  }

  /** The decision, telling in its `cost` how many units have been granted, whatever each of its rules takes for one. */
  static telling(decision: Decision, units: number): Decision {
    if (!(#receipt in decision)) return { ...decision, cost: units }
    // Nobody has seen it yet.
    Object.assign(decision, { cost: units })
    return decision
  }

  /** Whether it is a copy of a decision, by hand or through JSON: it tells of units, and has nothing by which they could be given back. */
  static isCopy(decision: Decision): boolean {
    return decision.cost > 0 && decision.checks?.length !== 0 && !(#receipt in decision)
  }

  /** The receipt of a decision, for who only reads it. */
  static receiptOf(decision: Decision): Receipt | undefined {
    return #receipt in decision ? decision.#receipt : undefined
  }

  /** Leaves a receipt for what is still taken, for another time; to a decision whose receipt was handed out. */
  static leaveReceipt(decision: Decision, receipt: Receipt): void {
    ;(decision as DecisionRecord).#receipt = receipt
  }

  /** The receipt of a decision, which is handed out once. */
  static takeReceipt(decision: Decision): Receipt | undefined {
    if (!(#receipt in decision)) return undefined
    const receipt = decision.#receipt
    decision.#receipt = undefined
    return receipt
  }
}

/** The check once its units have been given back. A shadow check that would have refused took none; what is over the limit has none left. */
function untaken(check: PolicyCheck): PolicyCheck {
  if (!check.allowed || check.overLimit || check.remaining === undefined) return check
  return { ...check, remaining: check.remaining + check.cost }
}

/** The check that binds; the first of equals. */
function bindingCheck(checks: readonly PolicyCheck[]): PolicyCheck | undefined {
  let binding: PolicyCheck | undefined
  for (let i = 0; i < checks.length; i++) {
    const check = checks[i] as PolicyCheck
    if (!check.shadow && (binding === undefined || isStricter(check, binding))) binding = check
  }
  return binding
}

/** What binding is judged by; checks have it, and so have decisions. */
export type Bindable = Pick<PolicyCheck, "allowed" | "remaining" | "cost" | "retryAfterMs">

/** Whether one binds more than the other: a refusal before an admission, then the longer wait or the smaller rest. */
export function isStricter(check: Bindable, than: Bindable): boolean {
  if (check.allowed !== than.allowed) return !check.allowed
  if (!check.allowed) return check.retryAfterMs > than.retryAfterMs
  const difference = moreRequests(check) - moreRequests(than)
  // Of rules that fit as many requests like this one, the one with fewer units left: a cheaper one may ask for them all.
  return difference < 0 || (difference === 0 && remainingOf(check) < remainingOf(than))
}

/** A counter that nobody read binds least. */
function remainingOf({ remaining = Number.POSITIVE_INFINITY }: Bindable): number {
  return remaining
}

function moreRequests(check: Bindable): number {
  return Math.floor(remainingOf(check) / Math.max(1, check.cost))
}

function shadowedOf(checks: readonly PolicyCheck[]): readonly string[] {
  let names: string[] | undefined
  for (let i = 0; i < checks.length; i++) {
    const { shadow, allowed, policy } = checks[i] as PolicyCheck
    if (!shadow || allowed) continue
    names ??= []
    names.push(policy)
  }
  return names ?? NONE
}
