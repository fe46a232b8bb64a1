import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  type MeterProviderOptions,
  type MetricData,
  type MetricReader,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics"

/** Longer than any test, because metrics are collected on request. */
const NEVER_MS = 2 ** 31 - 1

/** One series with its attributes, except those that identify the limiter. */
export interface Series {
  readonly attributes: Readonly<Record<string, unknown>>
  readonly value: number | Histogram
}

export interface Metering {
  readonly meterProvider: MeterProvider
  readonly reader: MetricReader
  /** Resolves with all current metrics, by the names of their instruments. */
  collect(): Promise<ReadonlyMap<string, MetricData>>
  /** Resolves with the series of one instrument; empty if nothing was recorded. */
  series(name: string): Promise<readonly Series[]>
  /**
   * Resolves with the values of one instrument. Each key consists of the values of the attributes `keys`, in that
   * order.
   */
  values(name: string, ...keys: readonly string[]): Promise<Readonly<Record<string, number>>>
}

/**
 * Starts OpenTelemetry's SDK as an app would, with an exporter that stores the metrics in memory. A reader belongs to
 * one provider. If the app creates the provider itself, pass "reader" as `options`.
 */
export function startMetering(options: MeterProviderOptions | "reader" = {}): Metering {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: NEVER_MS })
  const meterProvider =
    options === "reader" ? new MeterProvider() : new MeterProvider({ ...options, readers: [reader] })
  const self: Metering = {
    meterProvider,
    reader,
    async collect() {
      exporter.reset()
      await reader.forceFlush()
      const scopes = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
      const all = scopes.flatMap(({ metrics }) => metrics)
      return new Map(all.map((metric) => [metric.descriptor.name, metric]))
    },
    async series(name) {
      const found = (await self.collect()).get(name)
      const points = (found?.dataPoints ?? []) as readonly DataPoint<number | Histogram>[]
      return points.map(({ attributes, value }) => ({ attributes, value }))
    },
    async values(name, ...keys) {
      const series = await self.series(name)
      return Object.fromEntries(
        series.map(({ attributes, value }) => [
          keys
            .map((key) => attributes[key])
            .filter((part) => part !== undefined)
            .join(" "),
          typeof value === "number" ? value : value.count,
        ]),
      )
    },
  }
  return self
}
