import type { Check } from "../store.ts"

/** Returns a check of a fixed window of one second. */
export function fixedCheck(name: string, limit: number, cost = 1): Check {
  const window = { algorithm: "fixed-window", windowMs: 1_000, align: "epoch" } as const
  return { policy: { ...window, name, counter: name, limit }, partition: "", cost, shadow: false }
}
