import { diag } from "@opentelemetry/api"
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http"
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus"
import { MeterProvider, type MetricReader, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"
import { instrument } from "@sluice/otel"
import type { DecisionServiceParts } from "../decision-service.ts"
import type { GrpcReader } from "../sockets/door.ts"
import { CallDurations } from "./call-durations.ts"
import type { Phase } from "./readiness.ts"

/**
 * OpenTelemetry's environment variables for the endpoint that receives metrics. OpenTelemetry's exporter reads their
 * values itself.
 */
const PUSHED_BY = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"]

/** The events that are counted. */
type CountedEvents = Pick<
  DecisionServiceParts,
  | ("onLimiter" | "onUnknownService" | "onAnswered" | "onRefusedConnection")
  | ("onLateConnection" | "onOverload" | "onWrongToken" | "onFailedHandshake" | "onSettlement")
>

/** The metrics of the service. The metrics can be read, and are sent to a collector if one is configured. */
export interface Metrics extends Required<CountedEvents> {
  /**
   * Records whether clients should send requests, as /readyz reports. Before the first call, clients should not send
   * requests.
   */
  onPhase(phase: Phase): void
  /** Returns the response of GET /metrics, for Prometheus. */
  read(): Promise<{ readonly contentType: string; readonly text: string }>
  /** Sends the remaining metrics if the collector responds within a short time. Never rejects. */
  close(): Promise<void>
}

/**
 * Timeout for sending the last metrics. OpenTelemetry's default of 10 s would delay the shutdown too long if the
 * collector does not respond.
 */
const LAST_SEND_MS = 3_000

/**
 * Maximum number of attribute sets of an instrument. 5,000 services with 3 rules use 60,000 sets if each rule admits
 * and refuses, both with and without Redis. OpenTelemetry's default of 2,000 would drop the attributes of all other
 * sets.
 */
const CARDINALITY = 100_000

/**
 * Creates the metrics of the service. The metrics cover every limiter, and count the requests to unregistered services.
 */
export function createMetrics(
  env: Readonly<Record<string, string | undefined>>,
  lastSendMs: number = LAST_SEND_MS,
): Metrics {
  const durations = new CallDurations()
  const metricProducers = [durations]
  const exporter = new PrometheusExporter({ preventServerStart: true, metricProducers })
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true)
  const readers: MetricReader[] = [exporter]
  if (PUSHED_BY.some((name) => (env[name] ?? "") !== "")) {
    readers.push(new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter(), metricProducers }))
  }
  // This view changes only the limit, because it contains no other setting.
  const views = [{ instrumentName: "*", aggregationCardinalityLimit: CARDINALITY }]
  const meterProvider = new MeterProvider({ readers, views })
  const meter = meterProvider.getMeter("@sluice/service")
  const unknown = meter.createCounter("sluice.service.unknown", {
    description: "Requests to services that have no rules.",
    unit: "{request}",
  })
  const refused = meter.createCounter("sluice.service.refused_connections", {
    description: "Connections that were closed immediately because a connection limit was reached.",
    unit: "{connection}",
  })
  const late = meter.createCounter("sluice.service.late_connections", {
    description: "Connections that were closed because their first request did not arrive in time.",
    unit: "{connection}",
  })
  const handshakes = meter.createCounter("sluice.service.failed_handshakes", {
    description: "TLS handshakes that failed, by the error code of OpenSSL or Node.",
    unit: "{handshake}",
  })
  const overloads = meter.createCounter("sluice.service.overloads", {
    description: "Calls that were refused because the service was overloaded.",
    unit: "{call}",
  })
  const wrongTokens = meter.createCounter("sluice.service.wrong_tokens", {
    description: "Calls whose token was missing or wrong, by method.",
    unit: "{call}",
  })
  const settlements = meter.createCounter("sluice.service.settlements", {
    description: "Settlements of reservations, by result: settled, repeated, late or invalid.",
    unit: "{settlement}",
  })
  // Count here, because a counter of the SDK looks up its attributes on each call.
  const readBy: Record<GrpcReader, number> = { plain: 0, "grpc-js": 0 }
  meter
    .createObservableCounter("sluice.service.grpc_calls", {
      description: "Answered gRPC calls, by the code that read them: plain or grpc-js.",
      unit: "{call}",
    })
    .addCallback((result) => {
      for (const [reader, calls] of Object.entries(readBy)) {
        result.observe(calls, { "sluice.service.reader": reader })
      }
    })
  let isReady = false
  meter
    .createObservableGauge("sluice.service.ready", {
      description:
        "1 while clients should send requests, 0 before the rules are loaded and during the shutdown.",
      unit: "{service}",
    })
    .addCallback((result) => result.observe(Number(isReady)))
  return {
    onPhase(phase) {
      isReady = phase === "ready"
    },
    onLimiter: (limiter) => void instrument(limiter, { meterProvider, cardinalityLimit: CARDINALITY }),
    onUnknownService: () => unknown.add(1),
    onAnswered(door, path, code, durationMs, reader) {
      durations.record(door, path, code, durationMs)
      if (reader !== undefined) readBy[reader]++
    },
    onRefusedConnection: (bound) => refused.add(1, { "sluice.service.bound": bound }),
    onLateConnection: () => late.add(1),
    onOverload: (what) => overloads.add(1, { "sluice.service.bound": what }),
    onWrongToken: (path) => wrongTokens.add(1, { "rpc.method": path.slice(1) }),
    onSettlement: (end) => settlements.add(1, { "sluice.service.result": end }),
    onFailedHandshake: (reason) => handshakes.add(1, { "error.type": reason }),
    async read() {
      const { resourceMetrics } = await exporter.collect()
      return { contentType: "text/plain; version=0.0.4", text: serializer.serialize(resourceMetrics) }
    },
    close: () =>
      meterProvider
        .shutdown({ timeoutMillis: lastSendMs })
        .catch((error: unknown) =>
          diag.error("The last metrics could not be sent to the OTLP endpoint", error),
        ),
  }
}
