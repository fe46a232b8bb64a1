import { isBuiltInField } from "../../request/field.ts"
import type { ParsedRule } from "../../rules/rule.ts"

/**
 * A step of a request at which rules can be decided. "arrival" is before the body is read, "body" is when it has been
 * read, and "app" is when the app has added its own data.
 */
export type DecisionStep = "arrival" | "body" | "app"

/** Every step, in the order in which a request passes them. */
const DECISION_STEPS: readonly DecisionStep[] = ["arrival", "body", "app"]

/** Steps as the bits of a number, the first step in the lowest bit. */
export type StepSet = number

export const ALL_STEPS: StepSet = 0b111
export const NO_STEPS: StepSet = 0

/** Returns the set with this step alone. */
export function stepSet(step: DecisionStep): StepSet {
  return 1 << DECISION_STEPS.indexOf(step)
}

/** Returns the set with this step and those before it. */
export function stepsUpTo(step: DecisionStep): StepSet {
  return stepSet(step) * 2 - 1
}

/** Returns the set with this step and those after it. */
export function stepsFrom(step: DecisionStep): StepSet {
  return ALL_STEPS & ~(stepSet(step) - 1)
}

/** Returns the steps of a set, in order. */
export function stepsIn(set: StepSet): readonly DecisionStep[] {
  return DECISION_STEPS.filter((step) => (set & stepSet(step)) !== 0)
}

/**
 * Returns the step at which a rule can be decided, `first` or later. `isAppField` returns whether a function of the app
 * reads a field. The functions of a rule may read anything that the app knows, most often the user's plan.
 */
export function stepOf(
  { fields, limit, match }: ParsedRule,
  isAppField: (name: string) => boolean,
  first: DecisionStep,
): DecisionStep {
  const read = [...fields, ...Object.keys(match?.fields ?? {})]
  if (typeof limit === "function" || match?.when !== undefined || read.some(isAppField)) return "app"
  return first === "body" || read.some(mayBeInBody) ? "body" : first
}

/**
 * Whether the field may be in the body. True also for a bare name that no function of the app reads, because it is then
 * looked up in the body.
 */
function mayBeInBody(field: string): boolean {
  return isBuiltInField(field) ? field.startsWith("body:") : true
}
