import type { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics"
import { startMetering } from "../../otel/metering.ts"
import * as fastify from "./fastify.ts"

/** What blocks take for granted where OpenTelemetry is set up already; the app is Fastify's. */
export const given = {
  ...fastify.given,
  reader: (): MetricReader => startMetering("reader").reader,
  meterProvider: (): MeterProvider => startMetering().meterProvider,
} as const

export const serve = fastify.serve
