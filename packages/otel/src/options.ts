import type { MeterProvider } from "@opentelemetry/api"
import { InvalidOptionError, type Limiter, type Problem } from "@sluice/core"
import { show, suggestion } from "@sluice/core/kit"

/** Options of `instrument`. */
export interface InstrumentOptions {
  /** The provider of the meter. Default: the global provider, which must be set before `instrument` is called. */
  readonly meterProvider?: MeterProvider | undefined
  /**
   * The attribute `sluice.limiter.name`, which distinguishes the limiters of a process. Default: the limiter's service.
   * Limiters with the same name share their counters, and only one of their gauges is visible.
   */
  readonly name?: string | undefined
  /**
   * The attribute sets that the SDK keeps for an instrument. Beyond it, limiters and rules are counted together as
   * `_other`, and SLUICE_SERIES_LIMIT is logged. If you raise it, also raise `aggregationCardinalityLimit` in a view of the
   * provider. Default: 2000, as in OpenTelemetry's SDK.
   */
  readonly cardinalityLimit?: number | undefined
}

const OPTIONS = ["name", "meterProvider", "cardinalityLimit"]
const LEAST_CARDINALITY = 1_000

/**
 * Checks the arguments of `instrument`.
 * @throws {@link InvalidOptionError} with every problem
 */
export function checkArguments<Request>(limiter: Limiter<Request>, options: InstrumentOptions): void {
  const problems = optionProblems(options)
  if (typeof limiter?.on !== "function" || typeof limiter.status?.service !== "string") {
    const accepted = "a limiter that createLimiter() returned, or the `limiter` of a middleware"
    problems.unshift({ path: "limiter", message: `${show(limiter)} is not a limiter`, accepted })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems)
}

/**
 * Returns the problems with the options. Checks them by hand, because three options do not justify loading the
 * rules' validation library.
 */
function optionProblems(options: InstrumentOptions): Problem[] {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const accepted = `an object with ${OPTIONS.join(", ")}`
    return [{ path: "", message: `${show(options)} is not an options object`, accepted }]
  }
  const problems: Problem[] = []
  const { name, meterProvider, cardinalityLimit: limit = LEAST_CARDINALITY } = options
  if (!Number.isSafeInteger(limit) || limit < LEAST_CARDINALITY) {
    const accepted = `a whole number from ${LEAST_CARDINALITY}`
    problems.push({ path: "cardinalityLimit", message: `${show(limit)} is not a limit of series`, accepted })
  }
  if (name !== undefined && (typeof name !== "string" || name === "")) {
    const accepted = "a non-empty string"
    problems.push({ path: "name", message: `${show(name)} is not a name`, accepted })
  }
  if (meterProvider !== undefined && typeof meterProvider?.getMeter !== "function") {
    const accepted = "a MeterProvider of OpenTelemetry"
    problems.push({
      path: "meterProvider",
      message: `${show(meterProvider)} is not a meter provider`,
      accepted,
    })
  }
  for (const option of Object.keys(options).filter((option) => !OPTIONS.includes(option))) {
    const message = `${show(option)} is not an option of instrument()${suggestion(option, OPTIONS)}`
    problems.push({ path: option, message, accepted: OPTIONS.join(", ") })
  }
  return problems
}
