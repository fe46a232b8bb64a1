import { readFile } from "node:fs/promises"
import { metrics } from "@opentelemetry/api"
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus"
import { createLimiter } from "@sluice/core"
import { instrument } from "@sluice/otel"
import express from "express"
import request from "supertest"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import type { Block } from "../docs/blocks.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { runTypeScript } from "../docs/typescript/run.ts"
import { freePort } from "../servers/free-port.ts"
import { startMetering } from "./metering.ts"

const DOCUMENT = "docs/production/metrics.md"
const guide = await readFile(new URL(`../../${DOCUMENT}`, import.meta.url), "utf8")
const [onExpress, shown] = blocksTestedBy("test/otel/guide.test.ts", DOCUMENT, 2) as [Block, Block]

describe("the guide to metrics", () => {
  it("shows the metrics that Express exports to Prometheus on a local port", async () => {
    const port = await freePort()
    const app = express()
    // Creating the exporter starts its server. The port accepts connections when the promise of this call resolves.
    const started = vi.spyOn(PrometheusExporter.prototype, "startServer")
    const made = await runTypeScript(
      { ...onExpress, text: onExpress.text.replace("9464", String(port)) },
      { app },
    )
    const exporter = made.exporter as PrometheusExporter
    onTestFinished(() => exporter.shutdown())
    await started.mock.results[0]?.value
    for (let times = 0; times < 103; times++) await request(app).get("/")
    const told = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    for (const line of shown.text.trim().split("\n")) expect(told.split("\n")).toContain(line)
  })

  it("needs no provider if there is a global provider", async () => {
    const { meterProvider, collect } = startMetering()
    metrics.setGlobalMeterProvider(meterProvider)
    onTestFinished(() => metrics.disable())
    const limiter = createLimiter({ limit: 100, window: "1 minute" })
    instrument(limiter)
    await limiter.decide({ remoteAddress: "192.0.2.1" })
    expect((await collect()).has("sluice.policy.decisions")).toBe(true)
  })

  it("lists exactly the existing instruments, with their kind", () => {
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
      mock.calls.map(([name]) => `${name} ${kind}`),
    )
    const listed = /\| instrument \|[\s\S]*?\n\n/.exec(guide)?.[0] ?? ""
    const told = [...listed.matchAll(/^\| `(sluice\.\S+)` \| ([\w -]+) \|/gm)].map(
      ([, name, kind]) => `${name} ${kind}`,
    )
    expect(told.sort()).toEqual(made.sort())
  })
})
