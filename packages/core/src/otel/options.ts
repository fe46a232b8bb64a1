import type { MeterProvider } from "@opentelemetry/api"
import { InvalidOptionError, type Problem } from "../ground/errors.ts"
import { locate, show, suggestion } from "../ground/show.ts"
import type { Limiter } from "../limiter/limiter.ts"

/** Options of `instrument`. */
export interface InstrumentOptions {
  /** The provider of the meter. Default: the global provider, which must be set before `instrument` is called. */
  readonly meterProvider?: MeterProvider | undefined
  /**
   * The attribute `sluice.limiter.name`, which distinguishes the limiters of a process. Default: the limiter's service.
   * Limiters with the same name share their counters, and only one of their gauges is visible.
   */
  readonly name?: string | undefined
}

const OPTIONS = ["name", "meterProvider"]

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
 * Returns the problems with the options. Checks them by hand, because two options do not justify loading the
 * rules' validation library.
 */
function optionProblems(options: InstrumentOptions): Problem[] {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const accepted = `an object with ${OPTIONS.join(", ")}`
    return [{ path: "", message: `${show(options)} is not an options object`, accepted }]
  }
  const problems: Problem[] = []
  const { name, meterProvider } = options
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
    problems.push(locate("", { path: [option], message, accepted: OPTIONS.join(", ") }))
  }
  return problems
}
