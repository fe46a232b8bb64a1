import { readFile } from "node:fs/promises"
import { metrics } from "@opentelemetry/api"
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus"
import type { MeterProvider } from "@opentelemetry/sdk-metrics"
import { createLimiter, type Limiter, type LimiterOptions, manualClock } from "@sluice/core"
import { instrument } from "@sluice/core/otel"
import { rateLimit } from "@sluice/express"
import express, { type Request } from "express"
import fastify from "fastify"
import request from "supertest"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { freePort } from "../servers/free-port.ts"
import { startMetering } from "./metering.ts"

const guide = await readFile(new URL("../../docs/guides/metrics.md", import.meta.url), "utf8")
const blocks = (language: string): string[] =>
  [...guide.matchAll(new RegExp(`\`\`\`${language}\\n(.+?)\`\`\``, "gs"))].map(([, text = ""]) => text)

/**
 * Runs a block as it stands: what it imports is imported, unless it is given, as is what it takes for granted. Yields what it
 * has made.
 */
async function run(
  block: string,
  given: Readonly<Record<string, unknown>>,
  makes: readonly string[],
): Promise<Record<string, unknown>> {
  const scope: Record<string, unknown> = { ...given }
  const body = block.replace(/^import \{ (.+) \} from "(.+)"\n/gm, "")
  for (const [, names = "", from = ""] of block.matchAll(/^import \{ (.+) \} from "(.+)"$/gm)) {
    const module = await import(/* @vite-ignore */ from)
    for (const name of names.split(", ")) {
      expect(module, `${name} of ${from}`).toHaveProperty(name)
      scope[name] ??= module[name]
    }
  }
  const AsyncFunction = (async () => undefined).constructor as FunctionConstructor
  const code = new AsyncFunction(...Object.keys(scope), `${body}\nreturn { ${makes.join(", ")} }`)
  return code(...Object.values(scope))
}

const [onExpress = "", onKoa = "", onFastify = "", ...others] = blocks("ts")

describe("the guide to metrics", () => {
  it("has three programs", () => {
    expect([onExpress, onKoa, onFastify].every((text) => text.includes("instrument("))).toBe(true)
    expect(others).toEqual([])
  })

  it("counts on Express what Prometheus is shown, on a port of this machine alone", async () => {
    const port = await freePort()
    const app = express()
    // Started when the block has made it: then its port is known to be listened to.
    const started = vi.spyOn(PrometheusExporter.prototype, "startServer")
    const text = onExpress.replace("9464", String(port))
    // The same, in a minute that does not end.
    const clock = manualClock()
    const made = await run(
      text,
      { app, rateLimit: (options: LimiterOptions<Request>) => rateLimit({ ...options, clock }) },
      ["exporter"],
    )
    const exporter = made.exporter as PrometheusExporter
    onTestFinished(() => exporter.shutdown())
    await started.mock.results[0]?.value
    for (let times = 0; times < 103; times++) await request(app).get("/")
    const scraped = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const shown = guide.match(/^sluice_policy_decisions_total.+$/gm) ?? []
    expect(shown).toHaveLength(2)
    for (const line of shown) expect(scraped.split("\n")).toContain(line)
  })

  it("needs no provider on Koa where there is a global one", async () => {
    const { reader, collect } = startMetering("reader")
    onTestFinished(() => metrics.disable())
    const { limits } = await run(onKoa, { reader }, ["limits"])
    await (limits as { limiter: Limiter }).limiter.decide({ remoteAddress: "192.0.2.1" })
    expect((await collect()).has("sluice.policy.decisions")).toBe(true)
  })

  it("counts on Fastify what the limiter decides", async () => {
    const app = fastify()
    const metering = startMetering()
    const meterProvider: MeterProvider = metering.meterProvider
    await run(onFastify, { app, meterProvider }, [])
    app.get("/", async () => "hello")
    await app.inject("/")
    await app.close()
    expect(await metering.values("sluice.policy.decisions", "sluice.limiter.name")).toEqual({ api: 1 })
  })

  it("names every instrument with its kind and unit, and no other", () => {
    const { meterProvider } = startMetering()
    const meter = meterProvider.getMeter("test")
    vi.spyOn(meterProvider, "getMeter").mockReturnValue(meter)
    const kinds = {
      counter: vi.spyOn(meter, "createCounter"),
      histogram: vi.spyOn(meter, "createHistogram"),
      gauge: vi.spyOn(meter, "createObservableGauge"),
      "up-down counter": vi.spyOn(meter, "createObservableUpDownCounter"),
    }
    instrument(createLimiter({ limit: 1, window: "1 minute" }), { meterProvider })
    const made = Object.entries(kinds).flatMap(([kind, { mock }]) =>
      mock.calls.map(([name, options]) => `${name} ${kind} ${options?.unit}`),
    )
    const told = [...guide.matchAll(/^\| `(sluice\.\S+)` \| ([\w -]+) \| `(\S+)` \|/gm)].map(
      ([, name, kind, unit]) => `${name} ${kind} ${unit}`,
    )
    expect(told.sort()).toEqual(made.sort())
  })

  it("asks Prometheus for names that there are", () => {
    const told = new Set([...guide.matchAll(/`((?:sluice|error)\.[\w.]+)`/g)].map(([, name]) => name))
    const asked =
      blocks("promql")
        .join()
        .match(/sluice_\w+/g) ?? []
    expect(asked.length).toBeGreaterThan(8)
    for (const name of asked) {
      const plain = name.replace(/_(total|bucket|count)$/, "")
      expect([...told].map((each) => each?.replaceAll(".", "_"))).toContain(plain)
    }
  })
})
