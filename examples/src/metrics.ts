import { PrometheusExporter } from "@opentelemetry/exporter-prometheus"
import { MeterProvider } from "@opentelemetry/sdk-metrics"
import type { LimiterOptions } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import { instrument } from "@sluice/otel"
import express, { type Express, type Request } from "express"

const RULES = [
  { name: "minute", field: "ip", limit: 10, window: "1 minute" },
  { name: "tried-out", field: "ip", limit: 3, window: "1 minute", shadow: true },
]

/** Creates an app that exposes the metrics of its limiter for Prometheus at /metrics. */
export function createApp(options: LimiterOptions<Request> = {}): Express {
  const app = express()
  // By default, the exporter would listen on its own port. Here the app serves the metrics itself.
  const exporter = new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true })
  const meterProvider = new MeterProvider({ readers: [exporter] })
  const limits = rateLimit({ rules: RULES, ...options })
  instrument(limits.limiter, { meterProvider })
  app.get("/metrics", (req, res) => exporter.getMetricsRequestHandler(req, res))
  app.use(limits)
  app.get("/", (_req, res) => void res.json({ hello: "world" }))
  return app
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT || 3000)
  createApp()
    .listen(port)
    .once("listening", () => console.log(`Listens on http://localhost:${port}, with metrics at /metrics`))
}
