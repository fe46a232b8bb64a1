import type { Meter } from "@opentelemetry/api"
import type {
  InvalidRuleError,
  Limiter,
  LimiterEvents,
  RuleSourceError,
  StoreUnavailableError,
} from "@sluice/core"
import { ERROR_TYPE, LIMITER, type Measuring, Tally } from "./measuring.ts"
import { createCounter, type Fit } from "./series.ts"

/** Counts errors of the store and the rule source, evictions, and lost refunds. */
export function countErrors<Request>(
  limiter: Limiter<Request>,
  meter: Meter,
  name: string,
  fit: Fit,
): Measuring {
  // A tally, because every decision adds to this counter while the store is unavailable.
  const storeErrors = new Tally(
    createCounter(meter, fit, "sluice.store.errors", {
      description: "Number of times that the store failed and a decision was made without it.",
      unit: "{error}",
    }),
  )
  const evictions = createCounter(meter, fit, "sluice.store.evictions", {
    description: "Number of counters that a full memory store evicted while they still had an effect.",
    unit: "{eviction}",
  })
  const lostRefunds = createCounter(meter, fit, "sluice.store.lost_refunds", {
    description: "Number of background refunds that failed. Their units may stay taken.",
    unit: "{refund}",
  })
  const ruleErrors = createCounter(meter, fit, "sluice.rule_set.errors", {
    description: "Number of rejected rule changes and failed loads. A repeated error counts once.",
    unit: "{error}",
  })
  const onStoreError = ({ kind }: StoreUnavailableError) =>
    storeErrors.count(kind, () => ({ [LIMITER]: name, [ERROR_TYPE]: kind }))
  const onRuleError = ({ code }: RuleSourceError | InvalidRuleError) =>
    ruleErrors.add(1, { [LIMITER]: name, [ERROR_TYPE]: code })
  const onEvicted = (...[{ counters }]: LimiterEvents<Request>["evicted"]) =>
    evictions.add(counters, { [LIMITER]: name })
  const onRefundLost = (
    ...[
      {
        error: { kind },
      },
    ]: LimiterEvents<Request>["refund-lost"]
  ) => lostRefunds.add(1, { [LIMITER]: name, [ERROR_TYPE]: kind })
  limiter.on("store-error", onStoreError)
  limiter.on("rule-error", onRuleError)
  limiter.on("evicted", onEvicted)
  limiter.on("refund-lost", onRefundLost)
  return {
    flush: storeErrors.flush,
    end() {
      limiter.off("store-error", onStoreError)
      limiter.off("rule-error", onRuleError)
      limiter.off("evicted", onEvicted)
      limiter.off("refund-lost", onRefundLost)
    },
  }
}
