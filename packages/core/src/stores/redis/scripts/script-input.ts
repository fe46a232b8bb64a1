import { scriptOf } from "../../../algorithms/kinds.ts"
import { bucketsOf } from "../../../algorithms/sub-windows.ts"
import { StoreUnavailableError, textOf } from "../../../ground/errors.ts"
import { ceilingOf, type Policy } from "../../../ground/policy.ts"
import type { Check, CounterKey } from "../../store.ts"

/** The number by which scripts/layout.lua knows each script that an algorithm names. */
const NUMBERS = {
  sliding: 1,
  fixed: 2,
  "first-hit": 3,
  level: 4,
  periodic: 5,
  "sub-windows": 6,
  strict: 7,
  log: 8,
  penalty: 9,
} as const
/** Added to the kind of a policy under which requests count that it refuses. */
const COUNTS_REJECTED = 16
/** Added to the kind of a strict policy of which a grant, too, has to tell every part. */
const TELLS_PARTS = 32
/** What a packed value holds of the present window. */
const MOST_PACKED = 2 ** 20 - 1
/** What the hash of a strict window holds of it. */
const MOST_STRICT = 2 ** 17 - 1
/** Milliseconds: the product with a packed count is exact. */
const WIDEST_IN_PLACE = 2 ** 32

/** A request on its way to Redis: its checks, and the key of each. */
export interface RedisRequest {
  readonly checks: readonly Check[]
  readonly keys: readonly string[]
  /** True if the request has other checks, which are decided at another time. */
  readonly isPart?: boolean
}

/** A whole request. Its keys are made on first use, because a request that is merged with another one needs none. */
export class WholeRequest implements RedisRequest {
  readonly checks: readonly Check[]
  readonly #keyOf: (check: Check) => string
  #keys: readonly string[] | undefined

  constructor(checks: readonly Check[], keyOf: (check: Check) => string) {
    this.checks = checks
    this.#keyOf = keyOf
  }

  get keys(): readonly string[] {
    this.#keys ??= this.checks.map(this.#keyOf)
    return this.#keys
  }
}

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
  /** The kind of each, and what else there is to know of it. */
  readonly #kinds: number[] = []

  /**
   * The number, from 1, that the script knows the policy by. `isPart` where its checks are a part of a request: what is told
   * of the whole is of another time, for which every part of a strict window is needed.
   */
  numberOf(policy: Policy, isPart = false): number {
    const kind = tellingKindOf(policy, isPart)
    for (let i = 0; i < this.#policies.length; i++) {
      if (this.#kinds[i] === kind && isSamePolicy(this.#policies[i] as Policy, policy)) return i + 1
    }
    this.#kinds.push(kind)
    return this.#policies.push(policy)
  }

  /** The one argument of a script, a list of numbers in JSON: time, policies, and what the script itself reads. */
  input({ nowMs, untilMs, isWide }: CallTime, rest: readonly number[]): string {
    let text = `[${nowMs ?? -1},${untilMs ?? 0},${isWide ? 1 : 0},${this.#policies.length}`
    this.#policies.forEach((policy, i) => {
      text += `,${this.#kinds[i]},${ceilingOf(policy)},${windowMsOf(policy)},${detailOf(policy)}`
    })
    return rest.length === 0 ? `${text}]` : `${text},${rest.join(",")}]`
  }
}

/** Whether two policies count and decide alike; their counters are in the keys. */
export function isSamePolicy(one: Policy, other: Policy): boolean {
  return (
    one === other ||
    (one.limit === other.limit &&
      one.windowMs === other.windowMs &&
      one.extra === other.extra &&
      one.burst === other.burst &&
      one.buckets === other.buckets &&
      one.refill === other.refill &&
      one.algorithm === other.algorithm &&
      one.countRejected === other.countRejected &&
      one.penalty === other.penalty &&
      one.align === other.align)
  )
}

/** Whether INCRBY or HINCRBY alone can count the units, by scripts/take-one.lua: the layout is the packed one, and exact. */
export function isCountedInPlace(policy: Policy, cost: number, units: number): boolean {
  const ceiling = ceilingOf(policy)
  if (cost === 0 || cost > ceiling || policy.countRejected === true) return false
  const kind = kindOf(policy)
  if (kind === NUMBERS.strict) return !hasExtra(policy) && units <= MOST_STRICT && ceiling <= MOST_STRICT
  return (
    kind <= NUMBERS.fixed &&
    units <= MOST_PACKED &&
    ceiling <= MOST_PACKED &&
    policy.windowMs <= WIDEST_IN_PLACE
  )
}

/** @throws StoreUnavailableError when the scripts do not know the policy's algorithm, or no key can be named. */
export function checkCountable({ policy, partition }: CounterKey): void {
  // Taken for another one it would count wrongly, and nobody would see it.
  if (kindOf(policy) === undefined)
    throw new StoreUnavailableError(`The Redis store does not count by ${String(policy.algorithm)}.`)
  if (typeof partition !== "string")
    throw new StoreUnavailableError(`The Redis store counts by texts, and ${textOf(partition)} is none.`)
}

/** The number that scripts know the policy's kind of counter by. */
export function kindOf(policy: Policy): number {
  // `checkCountable` has refused a policy without one.
  return NUMBERS[scriptOf(policy) as keyof typeof NUMBERS]
}

/** Returns whether the policy is counted in a strict window, of which a grant tells only an outline of the parts. */
export function isStrict(policy: Policy): boolean {
  return kindOf(policy) === NUMBERS.strict
}

function tellingKindOf(policy: Policy, isPart: boolean): number {
  const kind = kindOf(policy)
  // When the next unit comes back of a limit that has been exceeded every part tells.
  const tellsParts = kind === NUMBERS.strict && (isPart || hasExtra(policy))
  return kind + (tellsParts ? TELLS_PARTS : 0) + (policy.countRejected === true ? COUNTS_REJECTED : 0)
}

function hasExtra({ extra = 0 }: Policy): boolean {
  return extra > 0
}

/** Of a penalty it is how long refusals are remembered. */
function windowMsOf({ windowMs, penalty }: Policy): number {
  return penalty === undefined ? windowMs : penalty.withinMs
}

/** What else the script has to know: how long a penalty blocks, how many units come back in a window, or how many sub-windows there are. */
export function detailOf(policy: Policy): number {
  if (policy.penalty !== undefined) return policy.penalty.forMs
  const kind = kindOf(policy)
  if (kind === NUMBERS.level || kind === NUMBERS.periodic) return policy.limit
  return kind === NUMBERS["sub-windows"] || kind === NUMBERS.strict ? bucketsOf(policy) : 0
}
