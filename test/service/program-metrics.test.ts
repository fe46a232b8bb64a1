import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { type Program, startProgram } from "./program.ts"

/** A log has no window that could end, so the test can run at any time. */
const RULES = `
service_id: 1
version: 7
rules: { name: per-user, field: user_id, algorithm: sliding-log, limit: 2, window: 1 day }
`

describe("the metrics of the program", () => {
  let folder: string
  let rules: string
  let program: Program | undefined
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "sluice-metrics-"))
    rules = join(folder, "rules.yaml")
    writeFileSync(rules, RULES)
  })
  afterEach(async () => {
    await program?.stop()
    program = undefined
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const ask = async ({ http }: Program, serviceId: number): Promise<void> => {
    const response = await fetch(`${http}/sluice.v1.RateLimiter/ShouldForwardRequest`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ serviceId, request: '{"user_id":"ada-lovelace"}' }),
    })
    await response.text()
  }

  it("count decisions by service and rule, without identifying clients", async () => {
    program = await startProgram(["--rules", rules])
    await program.said("The service is ready.")
    for (const serviceId of [1, 1, 1, 2, 3]) await ask(program, serviceId)
    const response = await fetch(`${program.operations}/metrics`)
    const text = await response.text()
    expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/)
    const valuesOf = (name: string): [string, number][] =>
      text
        .split("\n")
        .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
        .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))])
    const decisions = valuesOf("sluice_policy_decisions_total")
    expect(decisions).toHaveLength(2)
    for (const [series] of decisions) {
      expect(series).toContain('sluice_limiter_name="1"')
      expect(series).toContain('sluice_policy_name="per-user"')
    }
    expect(decisions.map(([series, count]) => [/result="(\w+)"/.exec(series)?.[1], count])).toEqual([
      ["admitted", 2],
      ["refused", 1],
    ])
    expect(valuesOf("sluice_service_unknown_total").map(([, count]) => count)).toEqual([2])
    expect(valuesOf("sluice_rule_set_version").map(([, version]) => version)).toEqual([7])
    expect(text).not.toContain("ada")
    // Callers that ask for decisions cannot read the metrics.
    expect((await fetch(`${program.http}/metrics`)).status).not.toBe(200)
  })

  it("are sent to the endpoint of the OpenTelemetry variable, at the latest on shutdown", async () => {
    const received: string[] = []
    const collector = createServer((request, response) => {
      received.push(`${request.method} ${request.url}`)
      request.resume()
      response.setHeader("content-type", "application/json")
      response.end("{}")
    })
    await new Promise<void>((resolve) => {
      collector.listen(0, "127.0.0.1", resolve)
    })
    const { port } = collector.address() as AddressInfo
    program = await startProgram(["--rules", rules], {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    })
    await program.said("The service is ready.")
    await ask(program, 1)
    expect(received).toEqual([])
    program.signal("SIGTERM")
    expect(await program.ended).toEqual({ code: 0, signal: null })
    await until("metrics have come", () => received.length > 0)
    expect(received[0]).toBe("POST /v1/metrics")
    collector.close()
  })
})
