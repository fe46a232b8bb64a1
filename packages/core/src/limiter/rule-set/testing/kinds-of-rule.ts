import type { RateRule } from "../../../rules/rule.ts"

/** Every way in which a rule can count, with its name in tests. */
export const KINDS_OF_RULE: readonly (readonly [name: string, members: Partial<RateRule>])[] = [
  ["sliding-window", {}],
  ["sliding-window with buckets", { buckets: 6 }],
  ["sliding-window-strict", { algorithm: "sliding-window-strict" }],
  ["sliding-log", { algorithm: "sliding-log" }],
  ["fixed-window", { algorithm: "fixed-window" }],
  ["fixed-window from the first hit", { algorithm: "fixed-window", align: "first-hit" }],
  ["token-bucket", { algorithm: "token-bucket" }],
  ["token-bucket with periodic refill", { algorithm: "token-bucket", refill: "periodic" }],
  ["leaky-bucket", { algorithm: "leaky-bucket" }],
]
