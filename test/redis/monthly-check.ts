import type { Check } from "../../packages/core/src/stores/store.ts"

/** One unit of Ann's 40 in 30 days. No test reaches the end of that window. */
export const MONTHLY_CHECK: Check = {
  policy: {
    name: "user",
    counter: "per-user",
    algorithm: "sliding-window",
    limit: 40,
    windowMs: 30 * 24 * 3_600_000,
    align: "epoch",
  },
  partition: "ann",
  cost: 1,
  shadow: false,
}
