import { status } from "@grpc/grpc-js"
import { expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { startService } from "./started.ts"
import { openStranger } from "./stranger.ts"

const PATH = "/sluice.v1.RateLimiter/ShouldForwardRequest"
const RULES = `
service_id: 1
rules: { name: units, field: user, rate: { requests_per_unit: 1000000, unit: day } }
---
service_id: 2
rules:
  name: held
  field: user
  rate: { requests_per_unit: 1, unit: day }
  throttle: { kind: queue, max_wait_ms: 86400000 }
`

it("how a call was answered is told by door, method and code, each once", async () => {
  const told: unknown[][] = []
  let leastMs = Number.POSITIVE_INFINITY
  const started = await startService(RULES, {
    bounds: { maxMessageBytes: 100_000, maxInFlight: 2, maxRequests: 20, arrivalMs: 500 },
    onAnswered(door, path, code, durationMs) {
      told.push([door, path, code])
      leastMs = Math.min(leastMs, durationMs)
    },
  })
  const stranger = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  const ask = (request: object, deadline = Date.now() + 10_000) =>
    stranger.call("ShouldForwardRequest", request, { deadline })
  const post = async (body: object, headers = {}): Promise<void> => {
    const asked = { method: "POST", headers: { "content-type": "application/json", ...headers } }
    await (await fetch(started.http + PATH, { ...asked, body: JSON.stringify(body) })).text()
  }
  const next = async (action: () => Promise<unknown>): Promise<unknown> => {
    const before = told.length
    await action()
    // A caller may know before we do.
    await until("it is told", () => told.length > before)
    return told.slice(before)
  }
  const held = { service_id: 2, request: '{"user":"held"}' }
  expect(await next(() => ask(held))).toEqual([["grpc", PATH, status.OK]])
  expect(await next(() => ask({}))).toEqual([["grpc", PATH, status.INVALID_ARGUMENT]])
  // Who is first to find that the time has passed, the caller or the service, is not said.
  const gone = [status.CANCELLED, status.DEADLINE_EXCEEDED]
  const [[door, path, code], ...more] = (await next(() => ask(held, Date.now() + 200))) as [
    [string, string, number],
  ]
  expect([door, path, gone.includes(code), more]).toEqual(["grpc", PATH, true, []])
  expect(await next(() => post({ serviceId: 1, request: "{}" }))).toEqual([["http", PATH, status.OK]])
  expect(await next(() => post({}))).toEqual([["http", PATH, status.INVALID_ARGUMENT]])
  const late = { "connect-timeout-ms": "50" }
  expect(await next(() => post({ serviceId: 2, request: held.request }, late))).toEqual([
    ["http", PATH, status.DEADLINE_EXCEEDED],
  ])
  expect(leastMs).toBeGreaterThanOrEqual(0)
  stranger.close()
  await started.stop()
})
