import { spareCapacityMonitor } from "../limiter/spare-capacity-monitor.ts"
import { capacityOf, type ParsedThrottle, type Policy } from "../policy.ts"
import type { ParsedRule } from "../rules/parsed-rule.ts"
import type { Warner } from "../warnings.ts"
import { compileTest } from "./callbacks.ts"
import { mostCounted } from "./most-admitted.ts"

/** The policy of a request; undefined where the rule does not apply to it. */
type PolicyReader = (request: unknown) => Policy | undefined

/** By what a rule's requests are counted, and what becomes of those that do not fit. */
interface Elastic {
  readonly policyOf: PolicyReader
  readonly throttle: ParsedThrottle
}

/**
 * The policies of an elastic rule: while there is capacity to spare they have what is admitted above the limit, up to
 * the rule's ceiling, and without they are those of the rule as if it were hard. Any other rule's stay what they are.
 *
 * A limit of 0, which only a function yields, closes the rule and is not exceeded.
 */
export function compileElastic(rule: ParsedRule, policyOf: PolicyReader, warner: Warner): Elastic {
  const { name, throttle, limit, burst } = rule
  if (throttle.kind !== "elastic") return { policyOf, throttle }
  const { signal, ceiling } = throttle
  const isSpare =
    signal === undefined
      ? spareCapacityMonitor.isSpare
      : compileTest(`signal of rule "${name}"`, signal, "there is no capacity to spare until it does", warner)
  // One for each limit that the rule has had: a store tells policies apart by what they are.
  const wider = new WeakMap<Policy, Policy>()
  const widerOf = (policy: Policy): Policy => {
    const capacity = capacityOf(policy)
    const extra = (ceiling ?? mostCounted(rule, capacity)) - capacity
    const made = extra > 0 ? { ...policy, extra } : policy
    wider.set(policy, made)
    return made
  }
  const highest = ceiling ?? mostCounted(rule, burst ?? (typeof limit === "number" ? limit : undefined))
  return {
    throttle: { kind: "elastic", ceiling: highest },
    policyOf(request) {
      const policy = policyOf(request)
      if (policy === undefined || policy.limit === 0 || !isSpare()) return policy
      return wider.get(policy) ?? widerOf(policy)
    },
  }
}

/** Whether the rule asks the monitor of this process. */
export function needsMonitor({ throttle }: ParsedRule): boolean {
  return throttle.kind === "elastic" && throttle.signal === undefined
}
