import type { BatchObservableResult, Meter } from "@opentelemetry/api"
import type { Limiter } from "../limiter/limiter.ts"
import { LIMITER } from "./measuring.ts"

/**
 * Reads the state of the limiter, its rules and its store when metrics are collected. Calls `onCollect` before each
 * reading. Returns a function that stops it.
 */
export function observeState<Request>(
  limiter: Limiter<Request>,
  meter: Meter,
  name: string,
  onCollect: () => void,
): () => void {
  const waiting = meter.createObservableUpDownCounter("sluice.request.waiting", {
    description: "Requests in acquire(), or at rules that hold them, that have no decision yet.",
    unit: "{request}",
  })
  const openBreakers = meter.createObservableGauge("sluice.store.breaker.open", {
    description: "Circuit breakers that are open: servers of the store that nobody waits for.",
    unit: "{breaker}",
  })
  const age = meter.createObservableGauge("sluice.rule_set.age", {
    description: "Since the rules were last known to be those of their source.",
    unit: "s",
  })
  const version = meter.createObservableGauge("sluice.rule_set.version", {
    description: "Version of the stored rules that are in force.",
    unit: "{version}",
  })
  const stale = meter.createObservableGauge("sluice.rule_set.stale", {
    description: "1 while the rules cannot be loaded for so long that they may be out of date, else 0.",
    unit: "{rule_set}",
  })
  const problems = meter.createObservableGauge("sluice.rule_set.problems", {
    description: "What is wrong with rules that were left out of a first edition: those limit nobody.",
    unit: "{problem}",
  })
  const rejected = meter.createObservableGauge("sluice.rule_set.rejected", {
    description: "1 while an edition of the rules is rejected and the previous one stays in force, else 0.",
    unit: "{rule_set}",
  })
  const observables = [waiting, openBreakers, age, version, stale, rejected, problems]
  const attributes = { [LIMITER]: name }
  const observe = (result: BatchObservableResult) => {
    onCollect()
    const { rules, status } = limiter
    result.observe(waiting, status.waiting, attributes)
    if (status.openBreakers !== undefined) result.observe(openBreakers, status.openBreakers, attributes)
    // Rules in code do not have an age.
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
