import { StoreUnavailableError } from "../../errors.ts"
import type { Policy } from "../../policy.ts"

/** Numbers that scripts/counter.lua knows the kinds of counter by. */
const SLIDING = 1
const FIXED = 2
const FIRST_HIT = 3
/** What a packed value holds of the present window. */
const MOST_PACKED = 2 ** 20 - 1
/** Milliseconds: the product with a packed count is exact. */
const WIDEST_IN_PLACE = 2 ** 32

/** What every call of a script begins with. */
export interface CallTime {
  /** Epoch milliseconds to decide at, in place of the server's own. */
  readonly nowMs: number | undefined
  /** The server's time after which nothing is counted; undefined is never. */
  readonly untilMs: number | undefined
  /** Whether values are written with their whole window start: with a clock that is not the one keys expire by. */
  readonly isWide: boolean
}

/** The policies of one call, each sent once. */
export class PolicyTable {
  readonly #policies: Policy[] = []

  /** The number, from 1, that the script knows the policy by. */
  numberOf(policy: Policy): number {
    for (let i = 0; i < this.#policies.length; i++) {
      if (isSamePolicy(this.#policies[i] as Policy, policy)) return i + 1
    }
    return this.#policies.push(policy)
  }

  /** The one argument of a script, a list of numbers in JSON: time, policies, and what the script itself reads. */
  input({ nowMs, untilMs, isWide }: CallTime, rest: readonly number[]): string {
    let text = `[${nowMs ?? -1},${untilMs ?? 0},${isWide ? 1 : 0},${this.#policies.length}`
    for (const policy of this.#policies) text += `,${kindOf(policy)},${policy.limit},${policy.windowMs}`
    return rest.length === 0 ? `${text}]` : `${text},${rest.join(",")}]`
  }
}

/** Whether two policies count and decide alike; their counters are in the keys. */
export function isSamePolicy(one: Policy, other: Policy): boolean {
  return (
    one === other ||
    (one.limit === other.limit &&
      one.windowMs === other.windowMs &&
      one.algorithm === other.algorithm &&
      one.align === other.align)
  )
}

/** Whether INCRBY alone can count the units, by scripts/take-one.lua: the layout is the packed one, and exact. */
export function isCountedInPlace(policy: Policy, cost: number, units: number): boolean {
  return (
    cost > 0 &&
    cost <= policy.limit &&
    units <= MOST_PACKED &&
    policy.limit <= MOST_PACKED &&
    policy.windowMs <= WIDEST_IN_PLACE &&
    kindOf(policy) !== FIRST_HIT
  )
}

/** @throws StoreUnavailableError when the scripts do not know the policy's algorithm. */
export function checkCountable({ algorithm }: Policy): void {
  if (algorithm === "sliding-window" || algorithm === "fixed-window") return
  // Taken for another one it would count wrongly, and nobody would see it.
  throw new StoreUnavailableError(`The Redis store does not count by ${String(algorithm)}.`)
}

/** The number that scripts know the policy's kind of counter by. */
export function kindOf({ algorithm, align }: Policy): number {
  if (algorithm === "sliding-window") return SLIDING
  return align === "first-hit" ? FIRST_HIT : FIXED
}
