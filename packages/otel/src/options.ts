import type { MeterProvider } from "@opentelemetry/api"
import type { Limiter } from "@sluice/core"
import { mustBe, type OptionCheck, problemAt, requireOptions } from "@sluice/core/kit"

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
   * Maximum number of attribute sets that the SDK keeps for an instrument. Beyond this number, limiters and rules are
   * counted together as `_other`, and SLUICE_SERIES_LIMIT is logged. If you raise the number, also raise
   * `aggregationCardinalityLimit` in a view of the provider. Default: 2000, as in OpenTelemetry's SDK.
   */
  readonly cardinalityLimit?: number | undefined
}

const LEAST_CARDINALITY = 1_000
const LIMITER = mustBe(
  "a limiter",
  "a limiter that createLimiter() returned, or the `limiter` of a middleware",
  (value) => {
    const { on, status } = (value ?? {}) as Partial<Limiter>
    return typeof on === "function" && typeof status?.service === "string"
  },
)
const CHECKS: Readonly<Record<keyof InstrumentOptions, OptionCheck>> = {
  name: mustBe("a name", "a non-empty string", (value) => typeof value === "string" && value !== ""),
  meterProvider: mustBe(
    "a meter provider",
    "a MeterProvider of OpenTelemetry",
    (value) => typeof (value as Partial<MeterProvider> | null)?.getMeter === "function",
  ),
  cardinalityLimit: mustBe(
    "a limit of series",
    `a whole number from ${LEAST_CARDINALITY}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= LEAST_CARDINALITY,
  ),
}

/**
 * Checks the arguments of `instrument`.
 * @throws {@link InvalidOptionError} with every problem
 */
export function checkArguments<Request>(limiter: Limiter<Request>, options: InstrumentOptions): void {
  requireOptions("instrument()", options, CHECKS, problemAt("limiter", limiter, LIMITER))
}
