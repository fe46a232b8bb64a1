import { type Attributes, type HrTime, ValueType } from "@opentelemetry/api"
import {
  AggregationTemporality,
  DataPointType,
  type HistogramMetricData,
  type MetricProducer,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics"
import type { Door } from "../door.ts"
import { Code } from "../status-error.ts"

/** Seconds, as those of a decision's duration in the core: the 50 ms that Redis has is one of them. */
const BOUNDARIES: readonly number[] = [
  0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** Names of gRPC's codes, by number. */
const NAMES: ReadonlyMap<number, string> = new Map(Object.entries(Code).map(([name, code]) => [code, name]))
/** What OpenTelemetry calls an error of a server: others are its caller's. */
const SERVER_ERRORS: ReadonlySet<number> = new Set([
  Code.DEADLINE_EXCEEDED,
  Code.UNIMPLEMENTED,
  Code.INTERNAL,
  Code.UNAVAILABLE,
])

interface Histogram {
  readonly attributes: Attributes
  readonly counts: number[]
  count: number
  sum: number
  min: number
  max: number
}

/** By code of the answer. */
type Histograms = (Histogram | undefined)[]

/**
 * How long calls take, as OpenTelemetry's `rpc.server.call.duration`
 * (https://opentelemetry.io/docs/specs/semconv/rpc/rpc-metrics/). It adds up by itself, and hands over when metrics are collected:
 * a histogram of the SDK finds its place by a text that it makes of the attributes each time, which costs more than all else that is
 * measured of a call.
 */
export class CallDurations implements MetricProducer {
  readonly #since: HrTime = hrTime(Date.now())
  readonly #doors: Readonly<Record<Door, Map<string, Histograms>>> = { grpc: new Map(), http: new Map() }

  /** Adds a call of the method at `path`, answered with `code` after so many milliseconds. */
  record(door: Door, path: string, code: number, durationMs: number): void {
    const methods = this.#doors[door]
    let histograms = methods.get(path)
    if (histograms === undefined) {
      histograms = []
      methods.set(path, histograms)
    }
    histograms[code] ??= emptyHistogram(attributesOf(door, path, code))
    add(histograms[code], durationMs / 1_000)
  }

  collect(): ReturnType<MetricProducer["collect"]> {
    const endTime = hrTime(Date.now())
    const histograms = Object.values(this.#doors)
      .flatMap((methods) => [...methods.values()].flat())
      .filter((histogram) => histogram !== undefined)
    const metric: HistogramMetricData = {
      descriptor: {
        name: "rpc.server.call.duration",
        description: "How long a call took, from when its request had come until its answer was made.",
        unit: "s",
        valueType: ValueType.DOUBLE,
      },
      aggregationTemporality: AggregationTemporality.CUMULATIVE,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: histograms.map(({ attributes, counts, ...value }) => ({
        attributes,
        startTime: this.#since,
        endTime,
        value: { ...value, buckets: { boundaries: [...BOUNDARIES], counts: [...counts] } },
      })),
    }
    const scopeMetrics = [
      { scope: { name: "@sluice/service" }, metrics: histograms.length === 0 ? [] : [metric] },
    ]
    // The reader that asks puts its own provider's resource on it.
    return Promise.resolve({ resourceMetrics: { scopeMetrics } as unknown as ResourceMetrics, errors: [] })
  }
}

function emptyHistogram(attributes: Attributes): Histogram {
  const counts = Array.from({ length: BOUNDARIES.length + 1 }, () => 0)
  return { attributes, counts, count: 0, sum: 0, min: Number.POSITIVE_INFINITY, max: 0 }
}

function add(histogram: Histogram, seconds: number): void {
  let bucket = 0
  // Most are in one of the first. A boundary is in the bucket below it.
  while (bucket < BOUNDARIES.length && seconds > (BOUNDARIES[bucket] as number)) bucket++
  histogram.counts[bucket] = (histogram.counts[bucket] as number) + 1
  histogram.count++
  histogram.sum += seconds
  if (seconds < histogram.min) histogram.min = seconds
  if (seconds > histogram.max) histogram.max = seconds
}

/** Over HTTP it is Connect's protocol, whose codes have small letters, and which has none for success. */
function attributesOf(door: Door, path: string, code: number): Attributes {
  const isGrpc = door === "grpc"
  const name = NAMES.get(code) ?? String(code)
  const status = isGrpc ? name : (CONNECT_NAMES[code as Code] ?? name.toLowerCase())
  return {
    "rpc.system.name": isGrpc ? "grpc" : "connectrpc",
    "rpc.method": path.slice(1),
    ...((isGrpc || code !== Code.OK) && { "rpc.response.status_code": status }),
    ...(SERVER_ERRORS.has(code) && { "error.type": status }),
  }
}

/** One that is spelt otherwise there. */
const CONNECT_NAMES: { readonly [Each in Code]?: string } = { [Code.CANCELLED]: "canceled" }

function hrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1_000)
  return [seconds, Math.round((epochMs - seconds * 1_000) * 1_000_000)]
}
