import { capacityOf, type Policy } from "../policy.ts"

/**
 * The part of a policy that one of so many instances admits by itself, for a request that costs so much at least. Nobody
 * within the limit is refused for ever for asking the wrong instance: there is always room for this one request, if the whole
 * limit has it, or what is admitted above it.
 *
 * What comes back to a bucket in a window is the instance's part whatever a request costs, so dear ones wait longer.
 */
export function shareOf(policy: Policy, cost: number, instances: number): Policy {
  const part = (units: number): number => Math.floor(units / instances)
  const whole = capacityOf(policy)
  const capacity = Math.min(whole, Math.max(1, part(whole), cost))
  const { limit, extra } = policy
  const sized = isBucket(policy)
    ? { limit: Math.min(limit, Math.max(1, part(limit))), burst: capacity }
    : { limit: capacity }
  if (extra === undefined) return { ...policy, ...sized }
  return { ...policy, ...sized, extra: Math.max(part(extra), Math.min(extra, cost - capacity)) }
}

function isBucket({ algorithm }: Policy): boolean {
  return algorithm === "token-bucket" || algorithm === "leaky-bucket"
}
