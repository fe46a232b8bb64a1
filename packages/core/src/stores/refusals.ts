import type { Check } from "./store.ts"

/** Whether a refusal of the check, or of the one before it, may have to be counted: then every one has to be seen. */
export function countsRefusals({ policy, shadow }: Check): boolean {
  return !shadow && (policy.countRejected === true || policy.algorithm === "penalty")
}
