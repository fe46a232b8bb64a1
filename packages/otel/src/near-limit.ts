import type { Meter } from "@opentelemetry/api"
import type { Limiter, LimiterEvents } from "@sluice/core"
import { LIMITER, type Measuring, POLICY, THRESHOLD } from "./measuring.ts"
import { createCounter, type Fit } from "./series.ts"

/** Counts the clients that have used a percentage of a limit, for each percentage in a rule's `notify`. */
export function countNearLimit<Request>(
  limiter: Limiter<Request>,
  meter: Meter,
  name: string,
  fit: Fit,
): Measuring {
  const reports = createCounter(meter, fit, "sluice.policy.near_limit", {
    description: "Number of times that a client reached a percentage of a rule's `notify`, once per window.",
    unit: "{client}",
  })
  const listener = (...[{ policy, threshold }]: LimiterEvents<Request>["near-limit"]) =>
    reports.add(1, { [LIMITER]: name, [POLICY]: policy, [THRESHOLD]: threshold })
  limiter.on("near-limit", listener)
  return {
    // Such events are rare, so they are added to the counter immediately.
    flush() {},
    end: () => limiter.off("near-limit", listener),
  }
}
