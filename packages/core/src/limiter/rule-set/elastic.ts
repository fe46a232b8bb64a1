import { capacityOf, type ParsedThrottle, type Policy } from "../../ground/policy.ts"
import type { Warner } from "../../ground/warnings.ts"
import { mostCounted } from "../../rules/parsing/most-admitted.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import { compileTest } from "../callbacks/compile-test.ts"
import { spareCapacityMonitor } from "../spare-capacity/monitor.ts"

type PolicyNow = () => Policy

/** The throttle of a rule, and the policies under which the rule counts. */
interface Elastic {
  readonly throttle: ParsedThrottle
  /**
   * Takes the policy without extra units, and returns a function that returns the current policy. Returns undefined
   * if the given policy always applies. The member is undefined for a rule that is not elastic.
   */
  readonly policyNowOf: ((policy: Policy) => PolicyNow | undefined) | undefined
}

/**
 * Compiles the policies of an elastic rule. While there is spare capacity, a policy admits units above the limit, up
 * to the rule's ceiling. Otherwise the policy admits only the limit. The policies of rules that are not elastic never
 * change.
 *
 * A limit of 0, which only a limit function returns, closes the rule and is never exceeded.
 */
export function compileElastic(rule: ParsedRule, warner: Warner): Elastic {
  const { name, throttle, limit, burst, overrides } = rule
  if (throttle.kind !== "elastic") return { throttle, policyNowOf: undefined }
  const { signal, ceiling, queue } = throttle
  const isSpare =
    signal === undefined
      ? spareCapacityMonitor.isSpare
      : compileTest(`signal of rule "${name}"`, signal, "there is no capacity to spare", warner)
  const compileNow = (policy: Policy): PolicyNow | undefined => {
    const capacity = capacityOf(policy)
    const extra = (ceiling ?? mostCounted(rule, capacity)) - capacity
    if (policy.limit === 0 || extra <= 0) return undefined
    const wider: Policy = { ...policy, extra }
    return () => (isSpare() ? wider : policy)
  }
  // The map has one entry for each limit of the rule, so that each limit always uses the same policy objects.
  const compiled = new WeakMap<Policy, PolicyNow | undefined>()
  const fixedLimit = typeof limit === "number" && overrides === undefined ? limit : undefined
  const highest = ceiling ?? mostCounted(rule, burst ?? fixedLimit)
  return {
    throttle: { kind: "elastic", ceiling: highest, ...(queue !== undefined && { queue }) },
    policyNowOf(policy) {
      if (!compiled.has(policy)) compiled.set(policy, compileNow(policy))
      return compiled.get(policy)
    },
  }
}

/** True if the rule uses this process's spare-capacity monitor. */
export function needsMonitor({ throttle }: ParsedRule): boolean {
  return throttle.kind === "elastic" && throttle.signal === undefined
}
