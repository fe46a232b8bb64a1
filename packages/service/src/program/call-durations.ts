import { type Attributes, type HrTime, ValueType } from "@opentelemetry/api"
import {
  AggregationTemporality,
  DataPointType,
  type HistogramMetricData,
  type MetricProducer,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics"
import { CHECK_PATH } from "../http/gateway-checks.ts"
import type { Door } from "../sockets/door.ts"
import { Code } from "../status-error.ts"

/**
 * Bucket boundaries in seconds, which equal the boundaries for the duration of decisions in the core. Redis's timeout
 * of 50 ms is one boundary.
 */
const BOUNDARIES: readonly number[] = [
  0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** Names of the gRPC codes, indexed by number. */
const NAMES: ReadonlyMap<number, string> = new Map(Object.entries(Code).map(([name, code]) => [code, name]))
/** Codes that OpenTelemetry counts as errors of the server. All other codes are errors of the caller. */
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

/** Histograms, keyed by the code of the response. */
type Histograms = (Histogram | undefined)[]

/**
 * The durations of calls, for OpenTelemetry's metric `rpc.server.call.duration`
 * (https://opentelemetry.io/docs/specs/semconv/rpc/rpc-metrics/). This class aggregates durations itself and exports
 * the result when metrics are collected. A histogram of the SDK would build a string from the attributes of each
 * call, which costs more than all other measurements of the call.
 */
export class CallDurations implements MetricProducer {
  readonly #since: HrTime = hrTime(Date.now())
  readonly #doors: Readonly<Record<Door, Map<string, Histograms>>> = { grpc: new Map(), http: new Map() }

  /** Records a call of the method at `path` that was answered with `code` after `durationMs`. */
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
        description: "Duration of a call, from the arrival of its request to its response.",
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
    // The resource does not matter, because the reader replaces it with the resource of its provider.
    return Promise.resolve({ resourceMetrics: { scopeMetrics } as unknown as ResourceMetrics, errors: [] })
  }
}

function emptyHistogram(attributes: Attributes): Histogram {
  const counts = Array.from({ length: BOUNDARIES.length + 1 }, () => 0)
  return { attributes, counts, count: 0, sum: 0, min: Number.POSITIVE_INFINITY, max: 0 }
}

function add(histogram: Histogram, seconds: number): void {
  let bucket = 0
  // Search linearly, because most durations belong to one of the first buckets. A boundary belongs to the bucket
  // below it.
  while (bucket < BOUNDARIES.length && seconds > (BOUNDARIES[bucket] as number)) bucket++
  histogram.counts[bucket] = (histogram.counts[bucket] as number) + 1
  histogram.count++
  histogram.sum += seconds
  if (seconds < histogram.min) histogram.min = seconds
  if (seconds > histogram.max) histogram.max = seconds
}

/**
 * Returns the attributes of a call. HTTP calls use Connect's protocol, whose codes are in lower case and do not
 * include a code for success. Checks of gateways use the same codes.
 */
function attributesOf(door: Door, path: string, code: number): Attributes {
  const isGrpc = door === "grpc"
  const name = NAMES.get(code) ?? String(code)
  const status = isGrpc ? name : (CONNECT_NAMES[code as Code] ?? name.toLowerCase())
  const system = path === CHECK_PATH ? "http" : "connectrpc"
  return {
    "rpc.system.name": isGrpc ? "grpc" : system,
    "rpc.method": path.slice(1),
    ...((isGrpc || code !== Code.OK) && { "rpc.response.status_code": status }),
    ...(SERVER_ERRORS.has(code) && { "error.type": status }),
  }
}

/** Codes whose names in Connect differ from the lowercase gRPC names. */
const CONNECT_NAMES: { readonly [Each in Code]?: string } = { [Code.CANCELLED]: "canceled" }

function hrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1_000)
  return [seconds, Math.round((epochMs - seconds * 1_000) * 1_000_000)]
}
