import type { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics"
import { startMetering } from "../../otel/metering.ts"
import * as fastify from "./fastify.ts"

/** The values for blocks that assume a configured OpenTelemetry. The app is Fastify's. */
export const given = {
  ...fastify.given,
  reader: (): MetricReader => startMetering("reader").reader,
  meterProvider: (): MeterProvider => startMetering().meterProvider,
} as const

export const serve = fastify.serve
