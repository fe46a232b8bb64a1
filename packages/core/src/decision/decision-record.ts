import { releases } from "../algorithms/kinds.ts"
import type { CounterKey, Store, StoreResult } from "../stores/store.ts"
import type { Decision, PolicyCheck, Refusal } from "./decision.ts"
import type { Holding } from "./permits/holding.ts"
import type { Ledger } from "./permits/ledger.ts"
import type { RuleCheck } from "./rule-check.ts"

/** A decision maker, the store that it calls, and the permits of its decisions. */
export interface DecisionMaker {
  readonly store: Store
  /** Absent in a replay, where no request is in progress. */
  readonly ledger?: Ledger
}

/** A record of the units that a decision has taken, and of their store, so that they can be refunded. */
export interface Receipt {
  /** The decider that made the decision and refunds it. */
  readonly by: DecisionMaker
  /**
   * The store from which the units were taken: the local fallback's store if the decider's own store was unavailable.
   */
  readonly store: Store
  readonly ruleChecks: readonly RuleCheck[]
  readonly answer: StoreResult
}

/** The decision on a request to which no rule applies. */
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

/**
 * The wait, in milliseconds, that a client receives when the service fails closed. This wait is a guess, because the
 * length of an outage is unknown.
 */
export const RETRY_WHEN_CLOSED_MS = 1_000

/** The decision that refuses a request because no rules have been loaded yet. */
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

/** The binding check, or the decision for a request without checks, which has the same members. */
type Binding = PolicyCheck | typeof UNLIMITED

/**
 * Degraded decisions that the store itself made, without the shared counters. A set contains these decisions, because
 * a field would slow down every decision.
 */
const madeByStore = new WeakSet<Decision>()

/** A decision made from some checks. The receipt is private, so a copy of the decision cannot be refunded. */
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
  #joinedFrom: readonly Decision[] | undefined

  /** `receipt` is undefined if no units were taken. */
  constructor(checks: readonly PolicyCheck[], degraded: boolean, receipt: Receipt | undefined) {
    // Fast path, because nearly every decision has a single check, which then binds.
    const first = checks[0]
    const isOne = checks.length === 1 && first?.shadow === false
    const binding: Binding = (isOne ? first : bindingCheck(checks)) ?? UNLIMITED
    this.allowed = binding.allowed
    this.policy = binding.policy
    this.limit = binding.limit
    // `remaining` is undefined only if the counter was not read, and in that case another rule binds.
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

  /** Marks a degraded decision that the store made, without the shared counters. */
  static madeByStore(decision: DecisionRecord): void {
    madeByStore.add(decision)
  }

  /** Whether the decision, or a decision that it was joined from, was made without a result of the store. */
  static isWithoutStore(decision: Decision): boolean {
    if (!decision.degraded) return false
    if (!(#joinedFrom in decision)) return true
    return decision.#joinedFrom?.some(DecisionRecord.isWithoutStore) ?? !madeByStore.has(decision)
  }

  /**
   * Returns an admitting decision as a refusal, because another decision of its group refuses. The refusal has taken
   * no units. `retryAfterMs` is the time for which the group must wait.
   */
  static refusedByGroup({ checks, degraded }: Decision, retryAfterMs: number): Decision {
    const record = new DecisionRecord(checks, degraded, undefined)
    const refusal: Refusal = "group"
    return Object.assign(record, { allowed: false, delayMs: 0, overLimit: false, retryAfterMs, refusal })
  }

  /**
   * Returns one decision for two decisions on the same request, which were made one after the other by different
   * rules. `names` lists the rules in order. If the later decision refuses, the units of the earlier rules stay taken.
   */
  static joined(earlier: Decision, later: Decision, names: readonly string[]): Decision {
    if (later.checks.length === 0 && later.allowed) return earlier
    if (earlier.checks.length === 0 || later.checks.length === 0) return later
    const { allowed } = later
    const checks = [...(allowed ? earlier.checks : earlier.checks.map(stayingTaken)), ...later.checks].sort(
      (one, other) => names.indexOf(one.policy) - names.indexOf(other.policy),
    )
    const record = new DecisionRecord(checks, earlier.degraded || later.degraded, undefined)
    const { cost } = earlier.policy === record.policy ? earlier : later
    Object.assign(record, { cost: allowed ? cost : 0 })
    record.#joinedFrom = allowed ? [earlier, later] : [later]
    return record
  }

  /**
   * Returns the decisions with the receipts. These are the decisions that this decision was joined from, or the
   * decision itself.
   */
  static joinedFrom(decision: Decision): readonly Decision[] {
    const parts = #joinedFrom in decision ? decision.#joinedFrom : undefined
    return parts?.flatMap(DecisionRecord.joinedFrom) ?? [decision]
  }

  /** Returns the decision with `cost` set to the number of granted units, whatever each rule charges for one unit. */
  static telling(decision: Decision, units: number): Decision {
    if (!(#receipt in decision)) return { ...decision, cost: units }
    // The caller has not seen the decision yet, so it can still be changed.
    Object.assign(decision, { cost: units })
    return decision
  }

  /**
   * True if the object is a copy of a decision, made by hand or through JSON. A copy has a cost but no receipt, so it
   * cannot be refunded.
   */
  static isCopy(decision: Decision): boolean {
    return decision.cost > 0 && decision.checks?.length !== 0 && !(#receipt in decision)
  }

  /** Returns the receipt of a decision without removing it. */
  static receiptOf(decision: Decision): Receipt | undefined {
    return #receipt in decision ? decision.#receipt : undefined
  }

  /** Stores a receipt for the units that are still taken, after `takeReceipt` has removed the receipt. */
  static leaveReceipt(decision: Decision, receipt: Receipt): void {
    ;(decision as DecisionRecord).#receipt = receipt
  }

  /** Removes and returns the receipt of a decision, so only the first call returns it. */
  static takeReceipt(decision: Decision): Receipt | undefined {
    if (!(#receipt in decision)) return undefined
    const receipt = decision.#receipt
    decision.#receipt = undefined
    return receipt
  }
}

/** Returns the check of an admitted step, after a later step has refused the request. */
function stayingTaken(check: PolicyCheck): PolicyCheck {
  const { allowed, cost, algorithm } = check
  return allowed && !releases({ algorithm }) ? { ...check, taken: cost } : check
}

const NO_HOLDINGS: readonly Holding[] = []

/**
 * A decision that has taken permits, which it holds until they are released. Other decisions have no field for permits,
 * because it would slow them down.
 */
export class HoldingDecision extends DecisionRecord {
  #holdings: readonly Holding[]
  readonly #ledger: Ledger | undefined

  constructor(checks: readonly PolicyCheck[], degraded: boolean, receipt: Receipt) {
    super(checks, degraded, receipt)
    const { by, store, ruleChecks, answer } = receipt
    this.#ledger = by.ledger
    const holdings: Holding[] = []
    for (let i = 0; i < ruleChecks.length; i++) {
      const ruleCheck = ruleChecks[i] as RuleCheck
      const { taken = 0, state, after = state } = answer.checks[i] ?? {}
      if (taken === 0 || by.ledger === undefined || !releases(ruleCheck.policy)) continue
      // Permits that were taken without the store are not counted there yet.
      const startMs = store === by.store ? after?.startMs : undefined
      holdings.push(by.ledger.hold(this, ruleCheck, taken, startMs, answer.nowMs))
    }
    this.#holdings = holdings
  }

  /** Whether the decision, or a decision that it was joined from, holds permits. */
  static holds(decision: Decision): boolean {
    if (#holdings in decision) return decision.#holdings.length > 0
    const parts = DecisionRecord.joinedFrom(decision)
    return parts[0] !== decision && parts.some(HoldingDecision.holds)
  }

  /** False if the decision took permits of another ledger. */
  static isOf(decision: Decision, ledger: Ledger): boolean {
    return !(#holdings in decision) || decision.#ledger === ledger
  }

  /** Removes and returns the permits in the matching counters, so only the first call returns them. */
  static takeHoldings(decision: Decision, isMeant?: (counter: CounterKey) => boolean): readonly Holding[] {
    if (!(#holdings in decision)) return NO_HOLDINGS
    const all = decision.#holdings
    decision.#holdings = isMeant === undefined ? NO_HOLDINGS : all.filter((holding) => !isMeant(holding))
    return isMeant === undefined ? all : all.filter(isMeant)
  }

  /** Removes and returns the permits for a reservation. This process no longer renews them. */
  static moveHoldings(decision: Decision): readonly Holding[] {
    const holdings = HoldingDecision.takeHoldings(decision)
    if (#ledger in decision) decision.#ledger?.moveOut(holdings)
    return holdings
  }
}

/** Returns a decision that has taken units. */
export function decisionWith(
  checks: readonly PolicyCheck[],
  degraded: boolean,
  receipt: Receipt,
): DecisionRecord {
  const { ruleChecks } = receipt
  // No closure here, because this runs for every admitted request.
  for (let i = 0; i < ruleChecks.length; i++) {
    const { policy, cost } = ruleChecks[i] as RuleCheck
    if (cost > 0 && releases(policy)) return new HoldingDecision(checks, degraded, receipt)
  }
  return new DecisionRecord(checks, degraded, receipt)
}

/** Returns the binding check. If several checks are equally strict, the first of them binds. */
export function bindingCheck(checks: readonly PolicyCheck[]): PolicyCheck | undefined {
  let binding: PolicyCheck | undefined
  for (let i = 0; i < checks.length; i++) {
    const check = checks[i] as PolicyCheck
    if (!check.shadow && (binding === undefined || isStricter(check, binding))) binding = check
  }
  return binding
}

/** The members that determine strictness. Decisions have no `algorithm`. */
export type Bindable = Pick<PolicyCheck, "allowed" | "remaining" | "cost" | "retryAfterMs"> &
  Partial<Pick<PolicyCheck, "algorithm">>

/**
 * True if `check` is stricter than `than`. A refusal is stricter than an admission, a longer wait than a shorter
 * wait, and fewer remaining requests than more. Permits bind an admission only if no other rule applies, because
 * headers would otherwise show permits as the remaining requests.
 */
export function isStricter(check: Bindable, than: Bindable): boolean {
  if (check.allowed !== than.allowed) return !check.allowed
  if (!check.allowed) return check.retryAfterMs > than.retryAfterMs
  if (check.algorithm !== than.algorithm) {
    const ofPermits = isOfPermits(check)
    if (ofPermits !== isOfPermits(than)) return !ofPermits
  }
  const difference = moreRequests(check) - moreRequests(than)
  // If both admit equally many requests of this cost, the check with fewer remaining units is stricter, because a
  // cheaper request may use all of them.
  return difference < 0 || (difference === 0 && remainingOf(check) < remainingOf(than))
}

/** Returns the remaining units. A counter that was not read counts as the least strict. */
function remainingOf({ remaining = Number.POSITIVE_INFINITY }: Bindable): number {
  return remaining
}

function moreRequests(check: Bindable): number {
  return Math.floor(remainingOf(check) / Math.max(1, check.cost))
}

function isOfPermits({ algorithm = "sliding-window" }: Bindable): boolean {
  return releases({ algorithm })
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
