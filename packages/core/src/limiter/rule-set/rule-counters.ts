import { hash } from "../../ground/hash.ts"
import { type Penalty, type Policy, REQUESTS } from "../../ground/policy.ts"
import type { ParsedRule } from "../../rules/rule.ts"

/**
 * Returns the short name of a rule's counters. A change of the window, period, time zone, algorithm, buckets, refill or
 * unit starts new counters. A change of the anchor, limit, burst, throttle, cost or message does not.
 */
export function counterOf(service: string, rule: ParsedRule): string {
  const { name, fields, algorithm, windowMs, align, buckets, refill, counts, calendar } = rule
  // A rule without buckets, refill and unit has the same name as before these options existed.
  const unit = counts === REQUESTS ? [] : [counts]
  const isPlain = buckets === undefined && refill === "continuous" && unit.length === 0
  const more = isPlain ? [] : [buckets ?? 0, refill, ...unit]
  const window = calendar === undefined ? windowMs : [calendar.per, calendar.timeZone]
  const identity = JSON.stringify([service, name, fields, algorithm, window, align, ...more])
  return fingerprint(identity)
}

/** Returns the policy of the counter that `BlockWatch` marks in the store while clients of the service are blocked. */
export function blocksOf(service: string): Policy {
  const counter = fingerprint(JSON.stringify([service, "blocks"]))
  return {
    name: "",
    counter,
    algorithm: "penalty",
    align: "epoch",
    limit: 0,
    windowMs: 1,
    penalty: NO_PENALTY,
  }
}

/** The penalty of a rule without `penalty`, which does not count refusals. */
const NO_PENALTY: Penalty = { refusals: 0, withinMs: 1, forMs: [1] }

/**
 * Returns the policy of the counter that counts the refusals of a rule with a penalty and stores the blocks by
 * `limiter.block`. The counter has its own name, so a change of the rule's window or algorithm does not end a block.
 * A change of the penalty's times applies to existing blocks.
 */
export function penaltyOf(service: string, { name, fields, penalty = NO_PENALTY }: ParsedRule): Policy {
  const identity = JSON.stringify([service, name, fields, "penalty"])
  return {
    name,
    counter: fingerprint(identity),
    algorithm: "penalty",
    align: "epoch",
    limit: penalty.refusals,
    windowMs: Math.max(penalty.withinMs, ...penalty.forMs),
    penalty,
  }
}

/**
 * Returns 96 bits of a hash in 16 characters. An attacker who can choose names finds a collision after about 2^48
 * tries. With 48 bits, a collision would need only 2^24 tries, or two minutes.
 */
function fingerprint(identity: string): string {
  return hash("sha256", identity, "base64url").slice(0, 16)
}
