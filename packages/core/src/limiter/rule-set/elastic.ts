import { capacityOf, type ParsedThrottle, type Policy } from "../../ground/policy.ts"
import type { Warner } from "../../ground/warnings.ts"
import { mostCounted, type ParsedRule } from "../../rules/parsing/parsed-rule.ts"
import { compileTest } from "../callbacks.ts"
import { spareCapacityMonitor } from "../spare-capacity/monitor.ts"

type PolicyNow = () => Policy

/** What becomes of requests that do not fit, and by which policy they are counted. */
interface Elastic {
  readonly throttle: ParsedThrottle
  /** Of the rule as if it were hard, what tells the policy of each moment; undefined where that one always holds. */
  readonly policyNowOf: ((policy: Policy) => PolicyNow | undefined) | undefined
}

/**
 * The policies of an elastic rule: while there is capacity to spare they have what is admitted above the limit, up to
 * the rule's ceiling, and without they are those of the rule as if it were hard. Any other rule's stay what they are.
 *
 * A limit of 0, which only a function yields, closes the rule and is not exceeded.
 */
export function compileElastic(rule: ParsedRule, warner: Warner): Elastic {
  const { name, throttle, limit, burst } = rule
  if (throttle.kind !== "elastic") return { throttle, policyNowOf: undefined }
  const { signal, ceiling } = throttle
  const isSpare =
    signal === undefined
      ? spareCapacityMonitor.isSpare
      : compileTest(`signal of rule "${name}"`, signal, "there is no capacity to spare until it does", warner)
  const compileNow = (policy: Policy): PolicyNow | undefined => {
    const capacity = capacityOf(policy)
    const extra = (ceiling ?? mostCounted(rule, capacity)) - capacity
    if (policy.limit === 0 || extra <= 0) return undefined
    const wider: Policy = { ...policy, extra }
    return () => (isSpare() ? wider : policy)
  }
  // One for each limit that the rule has had: a store tells policies apart by what they are.
  const compiled = new WeakMap<Policy, PolicyNow | undefined>()
  const highest = ceiling ?? mostCounted(rule, burst ?? (typeof limit === "number" ? limit : undefined))
  return {
    throttle: { kind: "elastic", ceiling: highest },
    policyNowOf(policy) {
      if (!compiled.has(policy)) compiled.set(policy, compileNow(policy))
      return compiled.get(policy)
    },
  }
}

/** Whether the rule asks the monitor of this process. */
export function needsMonitor({ throttle }: ParsedRule): boolean {
  return throttle.kind === "elastic" && throttle.signal === undefined
}
