import type { MeterProvider } from "@opentelemetry/api"
import { z } from "zod"
import { InvalidOptionError, type Problem } from "../errors.ts"
import type { Limiter } from "../http/limiter.ts"
import { locate, says, show } from "../rules/problems.ts"
import { readShape, strict } from "../rules/rule-members.ts"

const NAME = says("a name", "a string that is not empty")
const PROVIDER = says("a meter provider", "a MeterProvider of OpenTelemetry")

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

const shape = strict("the options of instrument", {
  name: z.string(NAME).min(1, NAME).optional(),
  meterProvider: z
    .custom((value) => typeof (value as Partial<MeterProvider> | null)?.getMeter === "function", PROVIDER)
    .optional(),
})

/** @throws {@link InvalidOptionError} with everything that is wrong with what `instrument` was given. */
export function checkArguments<Request>(limiter: Limiter<Request>, options: InstrumentOptions): void {
  const problems: Problem[] = readShape(shape, options).problems.map((problem) => locate("", problem))
  if (typeof limiter?.on !== "function" || typeof limiter.status?.service !== "string") {
    const accepted = "what createLimiter() returns, or the `limiter` of a middleware"
    problems.unshift({ path: "limiter", message: `${show(limiter)} is not a limiter`, accepted })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems)
}
