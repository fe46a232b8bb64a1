/** The key of the rule that `@RateLimit` stores on a class or handler. */
export const RULE = "sluice:rule"
/** The key of the names of rules that `@SkipRateLimit` stores on a class or handler; an empty list means all rules. */
export const SKIPPED = "sluice:skipped"
/** The key that marks the guard of this package, for the check that a gateway has the guard. */
export const IS_GUARD = "sluice:guard"
/** The token of the options of the module. */
export const OPTIONS: unique symbol = Symbol("sluice.options")
/** The token of the limiter of the module. */
export const LIMITER: unique symbol = Symbol("sluice.limiter")
