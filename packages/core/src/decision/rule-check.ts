import { ceilingOf, type OnStoreFailure, type ParsedThrottle, type Policy } from "../ground/policy.ts"
import type { Answer, Check } from "../stores/store.ts"

/** A check that a request asks for, with what its rule says should happen around it. */
export interface Ask extends Check {
  /** What the rule takes for each unit that is asked of it: `cost` is so many times the units. At least 1. */
  readonly unitCost: number
  /** Of who takes as many units as there are, what one of them costs; absent where it is all or nothing. */
  readonly leastCost?: number
  readonly rejectionMessage: string | undefined
  readonly onStoreFailure: OnStoreFailure
  /** What becomes of the request when it does not fit. Of "soft", the policy's `extra` already says how much. */
  readonly throttle: ParsedThrottle
  /**
   * Tells the policy of each moment, under elastic throttling, where it changes with the capacity to spare: `policy` is that
   * of the moment in which the ask was made.
   */
  readonly policyNow?: (() => Policy) | undefined
  /** The counter of its refusals, where too many of them block the client; never of a shadow rule. */
  readonly penalty?: Policy | undefined
  /** Settled before anything is counted: the rule's own list names the client, or a field is missing. */
  readonly refusal: "denied" | "missing-field" | undefined
  /** The field that is missing. */
  readonly field: string | undefined
}

/** The asks of a request that is refused because no rules have been loaded yet. It is known by its identity. */
export const RULES_MISSING: readonly Ask[] = Object.freeze([])

/** What so many units cost under the ask's rule, held to what is counted exactly. */
export function costOf({ unitCost }: Ask, units: number): number {
  return Math.min(units * unitCost, Number.MAX_SAFE_INTEGER)
}

/** The same asks for another number of units, of who would take fewer too. */
export function asksUpTo(asks: readonly Ask[], units: number): readonly Ask[] {
  if (asks === RULES_MISSING) return asks
  return asks.map((ask) => ({ ...ask, cost: costOf(ask, units), leastCost: ask.unitCost }))
}

/** The same asks, each by the policy that holds now. */
export function asksNow(asks: readonly Ask[]): readonly Ask[] {
  return asks.map((ask) => (ask.policyNow === undefined ? ask : { ...ask, policy: ask.policyNow() }))
}

/** Whether the ask is refused whatever the counts are. */
export function isHopeless(ask: Ask): boolean {
  return ask.refusal !== undefined || (ask.cost > ceilingOf(ask.policy) && !isForLater(ask))
}

/** Whether the ask is too dear only as long as there is no capacity to spare. A limit of 0 is not exceeded even then. */
function isForLater({ policy, throttle, cost }: Ask): boolean {
  return throttle.kind === "elastic" && policy.limit > 0 && !(cost > (throttle.ceiling ?? cost))
}

/** Sees how a store has answered, before it is a decision: `asked[i]` is what the answer's i-th check answers. */
export type Look = (asked: readonly Ask[], answer: Answer) => void
