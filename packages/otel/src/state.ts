import type { BatchObservableResult, Meter } from "@opentelemetry/api"
import type { Limiter } from "@sluice/core"
import { LIMITER } from "./measuring.ts"

/**
 * Reads the state of the limiter, its rules and its store when metrics are collected. Calls `onCollect` before each
 * reading. Returns a function that stops the readings.
 */
export function observeState<Request>(
  limiter: Limiter<Request>,
  meter: Meter,
  name: string,
  onCollect: () => void,
): () => void {
  const waiting = meter.createObservableUpDownCounter("sluice.request.waiting", {
    description: "Number of requests that wait for a decision, in acquire() or at rules that hold requests.",
    unit: "{request}",
  })
  const openBreakers = meter.createObservableGauge("sluice.store.breaker.open", {
    description:
      "Number of open circuit breakers. Requests do not wait for the store's servers behind open breakers.",
    unit: "{breaker}",
  })
  const age = meter.createObservableGauge("sluice.rule_set.age", {
    description: "Time since the rules were last known to match their source.",
    unit: "s",
  })
  const version = meter.createObservableGauge("sluice.rule_set.version", {
    description: "Version of the stored rules that are in force.",
    unit: "{version}",
  })
  const stale = meter.createObservableGauge("sluice.rule_set.stale", {
    description:
      "1 while the rules may be out of date because they have not been loaded for too long, otherwise 0.",
    unit: "{rule_set}",
  })
  const problems = meter.createObservableGauge("sluice.rule_set.problems", {
    description:
      "Number of problems in rules that were left out at the first load. Those rules have no effect.",
    unit: "{problem}",
  })
  const rejected = meter.createObservableGauge("sluice.rule_set.rejected", {
    description: "1 while changed rules are rejected and the previous rules stay in force, otherwise 0.",
    unit: "{rule_set}",
  })
  const observables = [waiting, openBreakers, age, version, stale, rejected, problems]
  const attributes = { [LIMITER]: name }
  const observe = (result: BatchObservableResult) => {
    onCollect()
    const { rules, status } = limiter
    result.observe(waiting, status.waiting, attributes)
    if (status.openBreakers !== undefined) result.observe(openBreakers, status.openBreakers, attributes)
    // Observe no age for rules in code, because they have none.
    if (rules.loadedAtMs === undefined && rules.ageMs === 0) return
    if (rules.loadedAtMs !== undefined) result.observe(age, rules.ageMs / 1_000, attributes)
    if (rules.version !== undefined) result.observe(version, rules.version, attributes)
    result.observe(stale, Number(rules.isStale), attributes)
    result.observe(rejected, Number(rules.isRejected), attributes)
    result.observe(problems, rules.problems.length, attributes)
  }
  meter.addBatchObservableCallback(observe, observables)
  return () => meter.removeBatchObservableCallback(observe, observables)
}
