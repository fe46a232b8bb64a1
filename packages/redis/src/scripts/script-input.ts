import { StoreUnavailableError } from "@sluice/core"
import { textOf } from "@sluice/core/kit"
import { bucketsOf, type Check, type CounterKey, ceilingOf, type Policy } from "@sluice/core/stores"

/** The number that scripts/layout.lua gives each kind of counter. */
const IN_FLIGHT = 0
const SLIDING = 1
const FIXED = 2
const FIRST_HIT = 3
const CALENDAR = 4
const LEVEL = 5
const PERIODIC = 6
const SUB_WINDOWS = 7
const STRICT = 8
const LOG = 9
const PENALTY = 10
/** A flag that is added to the kind of a policy if refused requests count. */
const COUNTS_REJECTED = 16
/** A flag that is added to the kind of a strict policy if replies to grants must also contain every part. */
const TELLS_PARTS = 32
/** A flag that is added to the kind of a policy whose refunds grant units for the current calendar period. */
const GRANTS = 64
/** Largest count of the current window that fits in a packed value. */
const MOST_PACKED = 2 ** 20 - 1
/** Largest count that fits in the hash of a strict window. */
const MOST_STRICT = 2 ** 17 - 1
/** Longest window, in milliseconds, for which the window times a packed count is exact. */
const WIDEST_IN_PLACE = 2 ** 32

/** A request for Redis, with its checks and the key of each check. */
export interface RedisRequest {
  readonly checks: readonly Check[]
  readonly keys: readonly string[]
  /** True if this is a part of a request, whose other checks are decided at another time. */
  readonly isPart?: boolean
}

/**
 * A whole request. The keys are created on first use, because a request that is merged with another request needs no
 * keys.
 */
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

/** The first arguments of every script call. */
export interface CallTime {
  /** The time at which to decide, in epoch milliseconds, instead of the server's own time. */
  readonly nowMs: number | undefined
  /** The deadline in the server's time, after which the script counts nothing. Undefined if there is no deadline. */
  readonly untilMs: number | undefined
  /** True if stored values contain their full window start, because keys do not expire by the clock. */
  readonly isWide: boolean
}

/** The policies of one call. Each policy is sent once. */
export class PolicyTable {
  readonly #policies: Policy[] = []
  /** The kind of each policy plus its flags. */
  readonly #kinds: number[] = []

  /**
   * Returns the policy's number in this call, counted from 1. Adds the policy if it is new. `isPart` is true if the
   * call decides only a part of a request. The result of the whole request is then computed for another time, which
   * needs every part of a strict window.
   */
  numberOf(policy: Policy, isPart = false): number {
    const kind = tellingKindOf(policy, isPart)
    for (let i = 0; i < this.#policies.length; i++) {
      if (this.#kinds[i] === kind && isSamePolicy(this.#policies[i] as Policy, policy)) return i + 1
    }
    this.#kinds.push(kind)
    return this.#policies.push(policy)
  }

  /**
   * Returns the only argument of a script. It is a JSON list with the time, the policies, and then the script's own
   * numbers.
   */
  input({ nowMs, untilMs, isWide }: CallTime, rest: readonly number[]): string {
    let text = `[${nowMs ?? -1},${untilMs ?? 0},${isWide ? 1 : 0},${this.#policies.length}`
    this.#policies.forEach((policy, i) => {
      const list = policy.penalty?.forMs ?? policy.periods
      const detail = list === undefined ? detailOf(policy) : `[${list}]`
      text += `,${this.#kinds[i]},${ceilingOf(policy)},${windowMsOf(policy)},${detail}`
    })
    return rest.length === 0 ? `${text}]` : `${text},${rest.join(",")}]`
  }
}

/**
 * True if two policies count and decide in the same way. Ignores their counters, because these are part of the keys.
 */
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
      one.periods === other.periods &&
      one.align === other.align)
  )
}

/** True if INCRBY or HINCRBY alone can count the units exactly, in the packed layout (scripts/take-one.lua). */
export function isCountedInPlace(policy: Policy, cost: number, units: number): boolean {
  const ceiling = ceilingOf(policy)
  if (cost === 0 || cost > ceiling || policy.countRejected === true) return false
  const kind = kindOf(policy)
  if (kind === STRICT) return !hasExtra(policy) && units <= MOST_STRICT && ceiling <= MOST_STRICT
  return kind <= FIXED && units <= MOST_PACKED && ceiling <= MOST_PACKED && policy.windowMs <= WIDEST_IN_PLACE
}

/** @throws StoreUnavailableError if the scripts do not support the algorithm, or if the partition is not a string. */
export function checkCountable({ policy, partition }: CounterKey): void {
  // Reject an unknown algorithm, because the scripts would silently count it as another algorithm.
  if (numberOf(policy) === undefined)
    throw new StoreUnavailableError(
      `The Redis store does not support the algorithm ${String(policy.algorithm)}.`,
    )
  if (typeof partition !== "string")
    throw new StoreUnavailableError(`The partition must be a string; got ${textOf(partition)}.`)
}

/** Returns the scripts' number for the policy's kind of counter; undefined if they do not support its algorithm. */
function numberOf({ algorithm, align, periods, buckets, refill }: Policy): number | undefined {
  switch (algorithm) {
    case "in-flight":
      return IN_FLIGHT
    case "sliding-window":
      return buckets === undefined ? SLIDING : SUB_WINDOWS
    case "sliding-window-strict":
      return STRICT
    case "sliding-log":
      return LOG
    case "fixed-window":
      return periods !== undefined ? CALENDAR : align === "first-hit" ? FIRST_HIT : FIXED
    case "token-bucket":
      return refill === "periodic" ? PERIODIC : LEVEL
    case "leaky-bucket":
      return LEVEL
    case "penalty":
      return PENALTY
    case "grant":
      return periods === undefined ? undefined : CALENDAR
  }
  return undefined
}

/** Returns the scripts' number for the kind of counter of a policy that `checkCountable` has accepted. */
export function kindOf(policy: Policy): number {
  return numberOf(policy) as number
}

/** True if the policy is counted in a strict window. Replies to grants of such a policy omit the count of each part. */
export function isStrict(policy: Policy): boolean {
  return kindOf(policy) === STRICT
}

function tellingKindOf(policy: Policy, isPart: boolean): number {
  const kind = kindOf(policy)
  // With extra units, a grant may exceed the limit. Every part is then needed to compute when the next unit comes back.
  const tellsParts = kind === STRICT && (isPart || hasExtra(policy))
  const grants = policy.algorithm === "grant"
  return (
    kind +
    (grants ? GRANTS : 0) +
    (tellsParts ? TELLS_PARTS : 0) +
    (policy.countRejected === true ? COUNTS_REJECTED : 0)
  )
}

function hasExtra({ extra = 0 }: Policy): boolean {
  return extra > 0
}

/** Returns the window in milliseconds. For a penalty, this is the time for which refusals are remembered. */
function windowMsOf({ windowMs, penalty }: Policy): number {
  return penalty === undefined ? windowMs : penalty.withinMs
}

/**
 * Returns the policy's detail for the script. The detail is the number of units that come back in a window, or the
 * number of sub-windows. For a penalty and for calendar periods, the detail is not a number, but the list of block
 * durations or of boundaries.
 */
export function detailOf(policy: Policy): number {
  const kind = kindOf(policy)
  if (kind === LEVEL || kind === PERIODIC) return policy.limit
  return kind === SUB_WINDOWS || kind === STRICT ? bucketsOf(policy) : 0
}
