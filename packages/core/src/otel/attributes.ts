/**
 * Attributes of the instruments, by OpenTelemetry's naming guidelines
 * (https://opentelemetry.io/docs/specs/semconv/general/naming/). Each has a bounded set of values: names that the app or its
 * rules give, and words of ours. Never whom a rule counts: clients have no end, and their addresses are nobody else's business.
 */
export const LIMITER = "sluice.limiter.name"
/** Name of the rule. */
export const POLICY = "sluice.policy.name"
/** admitted · over_limit · refused · shadowed */
export const RESULT = "sluice.decision.result"
/** normal · degraded: made without the shared store */
export const MODE = "sluice.decision.mode"
/** decide · takeUpTo · acquire · hold */
export const OPERATION = "sluice.operation.name"
/** A decision's `refusal`, of what is refused or shadowed. */
export const REFUSAL = "sluice.refusal.reason"
/** OpenTelemetry's own: https://opentelemetry.io/docs/specs/semconv/registry/attributes/error/ */
export const ERROR_TYPE = "error.type"
