import type { MeterProvider } from "@opentelemetry/api"
import { InvalidOptionError, type Problem } from "../errors.ts"
import type { Limiter } from "../http/limiter.ts"
import { show } from "../rules/problems.ts"

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

const ACCEPTED = "meterProvider, name"

/** @throws {@link InvalidOptionError} with everything that is wrong with what `instrument` was given. */
export function checkArguments<Request>(limiter: Limiter<Request>, options: InstrumentOptions): void {
  const problems: Problem[] = []
  if (typeof limiter?.on !== "function" || typeof limiter.status?.service !== "string") {
    const accepted = "what createLimiter() yields, or the `limiter` of a middleware"
    problems.push({ path: "limiter", message: `${show(limiter)} is not a limiter`, accepted })
  }
  for (const [path, value] of Object.entries(options)) {
    if (value === undefined) continue
    if (path === "name") {
      if (typeof value === "string" && value !== "") continue
      problems.push({ path, message: `${show(value)} is not a name`, accepted: "a text that is not empty" })
    } else if (path === "meterProvider") {
      if (typeof value?.getMeter === "function") continue
      problems.push({ path, message: "has no getMeter()", accepted: "a MeterProvider of OpenTelemetry" })
    } else {
      problems.push({ path, message: `${show(path)} is no option of instrument()`, accepted: ACCEPTED })
    }
  }
  if (problems.length > 0) throw new InvalidOptionError(problems)
}
