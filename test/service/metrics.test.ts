import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { createLimiter } from "@sluice/core"
import { afterEach, expect, it, vi } from "vitest"
import type { AskedRequest } from "../../packages/service/src/deciding/asked-request.ts"
import { createMetrics } from "../../packages/service/src/program/metrics.ts"

afterEach(() => {
  vi.unstubAllEnvs()
})

it("metrics are read as text, and sent nowhere where nobody said to", async () => {
  const metrics = createMetrics({ OTEL_EXPORTER_OTLP_ENDPOINT: "" })
  const limiter = createLimiter<AskedRequest>({ limit: 1, window: "1 day", field: "service" })
  metrics.onLimiter(limiter, "orders")
  metrics.onUnknownService()
  metrics.onRefusedConnection()
  const asked = { known: {}, facts: {}, cost: 1 }
  await limiter.decide(asked)
  await limiter.decide(asked)
  const { contentType, text } = await metrics.read()
  expect(contentType).toBe("text/plain; version=0.0.4")
  expect(text).toMatch(/^sluice_service_unknown_total 1$/m)
  expect(text).toMatch(/^sluice_service_refused_connections_total 1$/m)
  expect(text.match(/^sluice_policy_decisions_total\{.*\} 1$/gm)).toHaveLength(2)
  await limiter.close()
  await metrics.close()
})

it("metrics are sent where a variable of OpenTelemetry says", async () => {
  const received: (string | undefined)[] = []
  const collector = createServer((request, response) => {
    received.push(request.url)
    request.resume()
    response.setHeader("content-type", "application/json").end("{}")
  })
  await new Promise<void>((resolve) => {
    collector.listen(0, "127.0.0.1", resolve)
  })
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/only/metrics`
  // Its exporter reads it by itself.
  vi.stubEnv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", endpoint)
  const metrics = createMetrics(process.env)
  metrics.onUnknownService()
  await metrics.close()
  expect(received).toEqual(["/only/metrics"])
  collector.close()
})
