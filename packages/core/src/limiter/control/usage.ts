import { periodAt } from "../../algorithms/calendar-window.ts"
import type { Decider } from "../../decision/decider.ts"
import { explainCounted } from "../../decision/explain.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import { StoreUnavailableError } from "../../ground/errors.ts"
import type { CounterReading, StoreReading } from "../../stores/store.ts"
import { storeErrorOf } from "../../stores/store-error.ts"
import type { RuleUsage } from "../interface/rule-usage.ts"
import { notByCalendar } from "./client-options.ts"

/**
 * Returns the usage under those checks whose rules have `per`. Throws InvalidOptionError if another rule is named. Rejects
 * with StoreUnavailableError if the store fails.
 */
export async function usageOf(
  { store, storeTimeoutMs }: Pick<Decider, "store" | "storeTimeoutMs">,
  ruleChecks: readonly RuleCheck[],
  names: readonly string[] | undefined,
): Promise<readonly RuleUsage[]> {
  const other = names && ruleChecks.find(({ policy }) => policy.periods === undefined)
  if (other !== undefined) throw notByCalendar(other.policy.name, "call peek()")
  // A check that is settled without counting has no counter: its client is denied, or lacks the field.
  const checks = ruleChecks.filter(
    ({ policy, refusal }) => policy.periods !== undefined && refusal === undefined,
  )
  if (checks.length === 0) return []
  const { nowMs, counters, isDegraded, failure } = await read()
  // Without the shared counters, the usage would be too low, and a customer might see it.
  if (isDegraded === true) throw failure ?? new StoreUnavailableError("The shared counters do not respond.")
  return checks.map((check, i) => usage(check, counters[i] as CounterReading, nowMs))

  async function read(): Promise<StoreReading> {
    try {
      return await store.read(checks, storeTimeoutMs)
    } catch (error) {
      throw storeErrorOf(error)
    }
  }
}

function usage(check: RuleCheck, reading: CounterReading, nowMs: number): RuleUsage {
  const { limit, remaining = 0 } = explainCounted(check, { ...reading, taken: 0 }, nowMs, false)
  const { startMs: countedMs, current, previous } = reading.state
  // The count may have begun under another anchor, or under other rules of the time zone.
  const { startMs, endMs } = periodAt(check.policy, countedMs)
  return {
    policy: check.policy.name,
    unit: check.unit,
    partition: check.partition,
    startMs,
    endMs,
    limit,
    granted: previous,
    used: current,
    remaining,
    shadow: check.shadow,
  }
}
