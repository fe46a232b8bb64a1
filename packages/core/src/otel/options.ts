import type { MeterProvider } from "@opentelemetry/api"
import { InvalidOptionError, type Problem } from "../ground/errors.ts"
import { locate, show, suggestion } from "../ground/show.ts"
import type { Limiter } from "../limiter/limiter.ts"

/** Options of `instrument`. */
export interface InstrumentOptions {
  /** Default: the global one, which has to be there when `instrument` is called. */
  readonly meterProvider?: MeterProvider | undefined
  /**
   * What tells the limiters of a process apart, as attribute `sluice.limiter.name`: default the limiter's service. Two of one
   * name are counted as one, and of their gauges one is seen.
   */
  readonly name?: string | undefined
}

const OPTIONS = ["name", "meterProvider"]

/** @throws {@link InvalidOptionError} with everything that is wrong with what `instrument` was given. */
export function checkArguments<Request>(limiter: Limiter<Request>, options: InstrumentOptions): void {
  const problems = optionProblems(options)
  if (typeof limiter?.on !== "function" || typeof limiter.status?.service !== "string") {
    const accepted = "what createLimiter() returns, or the `limiter` of a middleware"
    problems.unshift({ path: "limiter", message: `${show(limiter)} is not a limiter`, accepted })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems)
}

/** Checked by hand: the library that checks rules would be loaded for two options. */
function optionProblems(options: InstrumentOptions): Problem[] {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const accepted = `an object with ${OPTIONS.join(", ")}`
    return [{ path: "", message: `${show(options)} is not the options of instrument`, accepted }]
  }
  const problems: Problem[] = []
  const { name, meterProvider } = options
  if (name !== undefined && (typeof name !== "string" || name === "")) {
    const accepted = "a string that is not empty"
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
    const message = `${show(option)} is not a member of the options of instrument${suggestion(option, OPTIONS)}`
    problems.push(locate("", { path: [option], message, accepted: OPTIONS.join(", ") }))
  }
  return problems
}
