import { isBuiltInField } from "../../request/field.ts"
import type { ParsedRule } from "../../rules/rule.ts"

/**
 * A step of a request at which rules can be decided. "arrival" is before the body is read, "body" is after the body
 * has been read, and "app" is after the app has added its own data.
 */
export type DecisionStep = "arrival" | "body" | "app"

/** Every step, in the order in which a request passes them. */
const DECISION_STEPS: readonly DecisionStep[] = ["arrival", "body", "app"]

/** A set of steps as the bits of a number. The lowest bit is the first step. */
export type StepSet = number

export const ALL_STEPS: StepSet = 0b111
export const NO_STEPS: StepSet = 0

/** Returns the set with this step alone. */
export function stepSet(step: DecisionStep): StepSet {
  return 1 << DECISION_STEPS.indexOf(step)
}

/** Returns the set with this step and all earlier steps. */
export function stepsUpTo(step: DecisionStep): StepSet {
  return stepSet(step) * 2 - 1
}

/** Returns the set with this step and all later steps. */
export function stepsFrom(step: DecisionStep): StepSet {
  return ALL_STEPS & ~(stepSet(step) - 1)
}

/** Returns the steps of a set, in order. */
export function stepsIn(set: StepSet): readonly DecisionStep[] {
  return DECISION_STEPS.filter((step) => (set & stepSet(step)) !== 0)
}

/**
 * Returns the earliest step at which a rule can be decided, `first` or later. `isAppField` returns whether one of the
 * app's functions reads a field. `readsAmount` is true if a function returns the amount of the rule's unit, because that
 * function may read the body. A rule with functions waits for "app", because they may read any data of the app, such as
 * the user's plan.
 */
export function stepOf(
  { fields, limit, windowOf, calendar, match }: ParsedRule,
  isAppField: (name: string) => boolean,
  readsAmount: boolean,
  first: DecisionStep,
): DecisionStep {
  const read = [...fields, ...Object.keys(match?.fields ?? {})]
  const isByFunction =
    [limit, windowOf, calendar?.anchor].some((member) => typeof member === "function") ||
    match?.when !== undefined
  if (isByFunction || read.some(isAppField)) return "app"
  return first === "body" || readsAmount || read.some(mayBeInBody) ? "body" : first
}

/**
 * Whether the field may be in the body. Also true for a bare name that no function of the app reads, because such a
 * field is read from the body.
 */
function mayBeInBody(field: string): boolean {
  return isBuiltInField(field) ? field.startsWith("body:") : true
}
