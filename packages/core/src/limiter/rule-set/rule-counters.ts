import { createHash } from "node:crypto"
import type { Penalty, Policy } from "../../ground/policy.ts"
import type { ParsedRule } from "../../rules/parsing/parsed-rule.ts"

/**
 * Returns the short name of a rule's counters. A change of window, algorithm, buckets or refill starts new counters; a
 * change of limit, burst, throttle, cost or message does not.
 */
export function counterOf(service: string, rule: ParsedRule): string {
  const { name, fields, algorithm, windowMs, align, buckets, refill } = rule
  // Where a rule has neither, its counters are named as if there were no such thing.
  const more = buckets === undefined && refill === undefined ? [] : [buckets ?? 0, refill ?? "continuous"]
  const identity = JSON.stringify([service, name, fields, algorithm, windowMs, align, ...more])
  return fingerprint(identity)
}

/** Returns what `BlockWatch` marks in the store while clients of the service are blocked. */
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

/** Of a rule that counts no refusals. */
const NO_PENALTY: Penalty = { refusals: 0, withinMs: 1, forMs: 1 }

/**
 * Returns what counts the refusals of a rule that has a penalty, and holds blocks by hand. Its counter has a name of its own, so
 * that no change of the rule's window or algorithm lifts a block; a change of the penalty's times applies to existing blocks.
 */
export function penaltyOf(service: string, { name, fields, penalty = NO_PENALTY }: ParsedRule): Policy {
  const identity = JSON.stringify([service, name, fields, "penalty"])
  return {
    name,
    counter: fingerprint(identity),
    algorithm: "penalty",
    align: "epoch",
    limit: penalty.refusals,
    windowMs: Math.max(penalty.withinMs, penalty.forMs),
    penalty,
  }
}

/**
 * Returns 96 bits of a hash in 16 characters. Whoever may choose names finds two that collide after some 2^48 tries, where
 * 48 bits took 2^24: two minutes.
 */
function fingerprint(identity: string): string {
  return createHash("sha256").update(identity).digest("base64url").slice(0, 16)
}
