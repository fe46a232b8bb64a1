import { diag } from "@opentelemetry/api"
import { createLimiter } from "@sluice/core"
import { afterEach, expect, it, vi } from "vitest"
import type { AskedRequest } from "../../packages/service/src/deciding/asked-request.ts"
import { CallDurations } from "../../packages/service/src/program/call-durations.ts"
import { createMetrics } from "../../packages/service/src/program/metrics.ts"
import { logOpenTelemetry } from "../../packages/service/src/program/opentelemetry-log.ts"
import { startHttpServer } from "../servers/http-server.ts"

afterEach(() => {
  vi.unstubAllEnvs()
  diag.disable()
})

it("metrics are served as text, and sent only if configured", async () => {
  const metrics = createMetrics({ OTEL_EXPORTER_OTLP_ENDPOINT: "" })
  const limiter = createLimiter<AskedRequest>({ limit: 1, window: "1 day", field: "service", notify: [100] })
  metrics.onLimiter(limiter, "orders")
  metrics.onUnknownService()
  metrics.onRefusedConnection("peer", "192.0.2.7")
  metrics.onLateConnection("192.0.2.7")
  metrics.onOverload("bytes", "192.0.2.7")
  metrics.onWrongToken("/a.B/C", "192.0.2.7")
  metrics.onSettlement("late")
  metrics.onFailedHandshake("ERR_TLS_HANDSHAKE_TIMEOUT", "192.0.2.7")
  const asked = { known: {}, facts: {}, cost: 1, units: undefined }
  await limiter.decide(asked)
  await limiter.decide(asked)
  const { contentType, text } = await metrics.read()
  expect(contentType).toBe("text/plain; version=0.0.4")
  expect(text).toMatch(/^sluice_service_unknown_total 1$/m)
  expect(text).toMatch(/^sluice_service_refused_connections_total\{sluice_service_bound="peer"\} 1$/m)
  expect(text).toMatch(/^sluice_service_overloads_total\{sluice_service_bound="bytes"\} 1$/m)
  expect(text).toMatch(/^sluice_service_wrong_tokens_total\{rpc_method="a.B\/C"\} 1$/m)
  expect(text).toMatch(/^sluice_service_settlements_total\{sluice_service_result="late"\} 1$/m)
  expect(text).toMatch(/^sluice_service_late_connections_total 1$/m)
  expect(text).toMatch(
    /^sluice_service_failed_handshakes_total\{error_type="ERR_TLS_HANDSHAKE_TIMEOUT"\} 1$/m,
  )
  expect(text).toMatch(/^sluice_policy_near_limit_total\{.*sluice_policy_threshold="100"\} 1$/m)
  expect(text.match(/^sluice_policy_decisions_total\{.*\} 1$/gm)).toHaveLength(2)
  await limiter.close()
  await metrics.close()
})

it("metrics show whether the service is ready", async () => {
  const metrics = createMetrics({})
  const shown = async () => /^sluice_service_ready (\d)$/m.exec((await metrics.read()).text)?.[1]
  const seen = [await shown()]
  for (const phase of ["ready", "draining"] as const) {
    metrics.onPhase(phase)
    seen.push(await shown())
  }
  expect(seen).toEqual(["0", "1", "0"])
  await metrics.close()
})

it("durations of calls follow the naming conventions of OpenTelemetry", async () => {
  const metrics = createMetrics({})
  const path = "/sluice.v1.RateLimiter/ShouldForwardRequest"
  metrics.onAnswered("grpc", path, 0, 0.1)
  metrics.onAnswered("grpc", path, 0, 0.1001)
  metrics.onAnswered("grpc", path, 0, 20_000, "plain")
  metrics.onAnswered("grpc", path, 3, 1, "plain")
  metrics.onAnswered("http", path, 0, 1)
  metrics.onAnswered("http", path, 1, 1)
  metrics.onAnswered("http", path, 4, 1)
  const { text } = await metrics.read()
  expect(text.match(/^sluice_service_grpc_calls_total.*$/gm)).toEqual([
    'sluice_service_grpc_calls_total{sluice_service_reader="plain"} 2',
    'sluice_service_grpc_calls_total{sluice_service_reader="grpc-js"} 0',
  ])
  const method = 'rpc_method="sluice.v1.RateLimiter/ShouldForwardRequest"'
  const counts = text.match(/^rpc_server_call_duration_count.*$/gm)
  const grpc = `rpc_server_call_duration_count{rpc_system_name="grpc",${method},rpc_response_status_code=`
  const http = `rpc_server_call_duration_count{rpc_system_name="connectrpc",${method}`
  expect(counts).toEqual([
    `${grpc}"OK"} 3`,
    `${grpc}"INVALID_ARGUMENT"} 1`,
    `${http}} 1`,
    `${http},rpc_response_status_code="canceled"} 1`,
    `${http},rpc_response_status_code="deadline_exceeded",error_type="deadline_exceeded"} 1`,
  ])
  const buckets = text.match(
    /^rpc_server_call_duration_bucket\{rpc_system_name="grpc".*status_code="OK".*$/gm,
  )
  expect(buckets?.map((line) => /le="([^"]+)"\} (\d+)$/.exec(line)?.slice(1))).toEqual(
    expect.arrayContaining([
      ["0.0001", "1"],
      ["0.0005", "2"],
      ["10", "2"],
      ["+Inf", "3"],
    ]),
  )
  expect(text).toMatch(/^rpc_server_call_duration_sum\{.*status_code="OK"\} 20\.0002/m)
  await metrics.close()
})

it("metrics contain the shortest and longest call of a method, and codes without a name as numbers", async () => {
  const durations = new CallDurations()
  for (const ms of [20, 30, 10]) durations.record("grpc", "/a.B/C", 99, ms)
  const { resourceMetrics } = await durations.collect()
  expect(resourceMetrics.scopeMetrics[0]?.metrics[0]?.dataPoints).toMatchObject([
    { attributes: { "rpc.response.status_code": "99" }, value: { count: 3, min: 0.01, max: 0.03 } },
  ])
})

it("metrics are sent to the endpoint of the OpenTelemetry variable", async () => {
  const received: (string | undefined)[] = []
  let body = ""
  const collector = await startHttpServer((request, response) => {
    received.push(request.url)
    request.on("data", (chunk) => {
      body += chunk
    })
    response.setHeader("content-type", "application/json").end("{}")
  })
  // Set the variable in this process, because the exporter reads it itself.
  vi.stubEnv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", `${collector.url}/only/metrics`)
  const metrics = createMetrics(process.env)
  metrics.onUnknownService()
  metrics.onAnswered("grpc", "/a.B/C", 0, 2)
  await metrics.close()
  expect(received).toEqual(["/only/metrics"])
  expect(body).toContain("sluice.service.unknown")
  expect(body).toMatch(/"rpc\.server\.call\.duration".*"count":1,"sum":0\.002/)
  await collector.close()
})

/** Creates a log that stores its messages. */
function keptLog() {
  const lines: string[] = []
  return { lines, log: { warn: (message: string) => void lines.push(message) } }
}

it("metrics log an invalid variable, and a collector that refuses the metrics", async () => {
  const collector = await startHttpServer((request, response) => {
    request.resume()
    response.writeHead(401).end("{}")
  })
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
  vi.stubEnv("OTEL_EXPORTER_OTLP_COMPRESSION", "zip")
  const { lines, log } = keptLog()
  logOpenTelemetry(log)
  const metrics = createMetrics(process.env)
  await metrics.close()
  expect(lines).toEqual([
    expect.stringMatching(/^OpenTelemetry: .*OTEL_EXPORTER_OTLP_COMPRESSION.*'zip'/),
    expect.stringMatching(/^OpenTelemetry: [^{]*export failed.*Unauthorized/),
  ])
  await collector.close()
})

it("an unresponsive collector delays shutdown only briefly, and the loss is logged", async () => {
  const collector = await startHttpServer(() => undefined)
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
  const { lines, log } = keptLog()
  logOpenTelemetry(log)
  await createMetrics(process.env, 50).close()
  expect(lines).toEqual([
    "OpenTelemetry: The last metrics could not be sent to the OTLP endpoint: Operation timed out.",
  ])
  await collector.close()
})
