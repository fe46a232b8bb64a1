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

/** Far beyond any test: metrics are collected when the test asks. */
const NEVER_MS = 2 ** 31 - 1

/** One series: what it says of its attributes, without those that say which limiter it is. */
export interface Series {
  readonly attributes: Readonly<Record<string, unknown>>
  readonly value: number | Histogram
}

export interface Metering {
  readonly meterProvider: MeterProvider
  readonly reader: MetricReader
  /** Everything that there is now, by the names of the instruments. */
  collect(): Promise<ReadonlyMap<string, MetricData>>
  /** The series of one instrument; none where it has not been recorded. */
  series(name: string): Promise<readonly Series[]>
  /** The values of one instrument by what tells its series apart: the values of the attributes in the order of `keys`. */
  values(name: string, ...keys: readonly string[]): Promise<Readonly<Record<string, number>>>
}

/**
 * OpenTelemetry's SDK, as an app sets it up, with an exporter that keeps what it gets. A reader has one provider: where the
 * app makes that by itself, `options` is "reader", and there is no other.
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
