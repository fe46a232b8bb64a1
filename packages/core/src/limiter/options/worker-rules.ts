import { holdsAdmitted } from "../../algorithms/kinds.ts"
import { holdMsOf } from "../../decision/permits/holding.ts"
import { type ParsedThrottle, PERMITS, queueOf } from "../../ground/policy.ts"
import type { Warner } from "../../ground/warnings.ts"
import type { ParsedRule } from "../../rules/rule.ts"

/**
 * Returns why a Cloudflare Worker cannot throttle like this; undefined if it can. There, a request must not wait for a
 * timer of another request, and the load of the event loop cannot be measured.
 */
export function workerProblem(throttle: ParsedThrottle): string | undefined {
  if (throttle.kind === "elastic" && throttle.signal === undefined) {
    return "is elastic without a signal, and a Cloudflare Worker cannot measure its load"
  }
  const queue = queueOf(throttle)
  if (queue === undefined || queue.maxWaiting === 0) return undefined
  return "holds requests in a line, which would hang in a Cloudflare Worker"
}

/**
 * Returns a rule as a Cloudflare Worker can apply it: without requests that wait. Logs a warning once per rule. A rule
 * of a source is not rejected, because processes of Node may apply it, too.
 */
export function fitWorker(rule: ParsedRule, warner: Warner): ParsedRule {
  const { name, throttle, counts } = rule
  const warn = (what: string): void => warner.once("SLUICE_RULE_NEEDS_NODE", `Rule "${name}" ${what}`, name)
  if (counts === PERMITS) {
    const mostMs = holdMsOf(rule)
    warn(
      `counts requests in flight, and a Cloudflare Worker cannot renew permits, so a request counts for ${mostMs} ms at most.`,
    )
  }
  const problem = workerProblem(throttle)
  if (problem === undefined) return rule
  warn(`${problem}, so the rule refuses requests that would have to wait or be above the limit.`)
  return { ...rule, throttle: withoutWaiting(rule) }
}

function withoutWaiting({ throttle, algorithm }: ParsedRule): ParsedThrottle {
  // A leaky bucket still delays what it admits, because each of these requests has a timer of its own.
  if (throttle.kind === "queue" && holdsAdmitted(algorithm)) return { ...throttle, maxWaiting: 0 }
  const isElastic = throttle.kind === "elastic" && throttle.signal !== undefined
  if (throttle.kind !== "soft" && !isElastic) return { kind: "hard" }
  const { queue: _queue, ...others } = throttle
  return others
}
