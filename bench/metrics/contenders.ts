import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics"
import { createLimiter, type Limiter } from "@sluice/core"
import { recordActivity } from "@sluice/dashboard"
import { instrument } from "@sluice/otel"

/** Metrics are never collected by a timer, because the benchmark collects them itself at the end of a round. */
const NEVER_MS = 2 ** 31 - 1

/** Adds a listener to the decisions of a limiter. Returns a function that collects the metrics. */
export const CONTENDERS: Readonly<Record<string, (limiter: Limiter<object>) => () => Promise<void>>> = {
  nobody: () => nothing,
  'an empty listener of "decision"': (limiter) => {
    limiter.on("decision", () => undefined)
    return nothing
  },
  'an empty listener of "decided"': (limiter) => {
    limiter.on("decided", () => undefined)
    return nothing
  },
  "OpenTelemetry without its SDK": (limiter) => {
    instrument(limiter)
    return nothing
  },
  "the dashboard": (limiter) => {
    recordActivity(limiter)
    return nothing
  },
  OpenTelemetry: (limiter) => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: NEVER_MS })
    instrument(limiter, { meterProvider: new MeterProvider({ readers: [reader] }) })
    return async () => {
      await reader.forceFlush()
      exporter.reset()
    }
  },
}

/** Creates a limiter whose limits are never reached, with its own memory store. */
export function makeLimiter(rules: number): Limiter<object> {
  return createLimiter<object>({
    service: `of ${rules}`,
    rules: Array.from({ length: rules }, (_, index) => ({
      name: `rule ${index}`,
      field: "ip",
      limit: 1_000_000_000,
      window: `${index + 1} minutes`,
    })),
  })
}

async function nothing(): Promise<void> {}
