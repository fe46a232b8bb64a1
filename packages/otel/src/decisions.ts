import type { Attributes, Meter } from "@opentelemetry/api"
import type { Decision, DecisionCall, Limiter, PolicyCheck } from "@sluice/core"
import { LIMITER, type Measuring, MODE, OPERATION, POLICY, REFUSAL, RESULT, Tally } from "./measuring.ts"
import { createCounter, type Fit } from "./series.ts"

/**
 * Boundaries of the histogram in seconds. A decision in memory falls into the first bucket, and a decision by Redis
 * into the middle buckets. The default deadline of 50 ms is a boundary. The last buckets are for requests that wait.
 */
const BOUNDARIES = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const DURATION = "sluice.decision.duration"

/** Counts the decisions of each rule, and measures how long decisions take. */
export function measureDecisions<Request>(
  limiter: Limiter<Request>,
  meter: Meter,
  name: string,
  fit: Fit,
): Measuring {
  const decisions = new Tally(
    createCounter(meter, fit, "sluice.policy.decisions", {
      description: "Number of decisions of each rule. A request under two rules counts once for each rule.",
      unit: "{decision}",
    }),
  )
  const duration = meter.createHistogram(DURATION, {
    description: "Time to decide a request under all its rules, including the time that it waited.",
    unit: "s",
    advice: { explicitBucketBoundaries: BOUNDARIES },
  })
  const ofDuration = new Map<string, Attributes>()
  const listener = (decision: Decision, _request: Request, { operation, durationMs }: DecisionCall) => {
    const mode = decision.degraded ? "degraded" : "normal"
    const made = resultOf(decision, false)
    const key = `${operation} ${made} ${mode}`
    let attributes = ofDuration.get(key)
    if (attributes === undefined) {
      const own = { [LIMITER]: name, [OPERATION]: operation, [RESULT]: made, [MODE]: mode }
      attributes = fit(DURATION, own)
      ofDuration.set(key, attributes)
    }
    duration.record(durationMs / 1_000, attributes)
    for (const check of decision.checks) {
      const { policy, shadow, refusal = "" } = check
      const result = resultOf(check, shadow)
      // The name comes last, because it may contain spaces.
      decisions.count(`${mode} ${result} ${refusal} ${policy}`, () => ({
        [LIMITER]: name,
        [POLICY]: policy,
        [RESULT]: result,
        [MODE]: mode,
        ...(refusal !== "" && { [REFUSAL]: refusal }),
      }))
    }
  }
  limiter.on("decision", listener)
  return {
    flush: decisions.flush,
    end: () => limiter.off("decision", listener),
  }
}

function resultOf({ allowed, overLimit }: Decision | PolicyCheck, shadow: boolean): string {
  if (!allowed) return shadow ? "shadowed" : "refused"
  return overLimit ? "over_limit" : "admitted"
}
