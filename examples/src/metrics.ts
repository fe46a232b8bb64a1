import type { Limiter, LimiterOptions } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import { Counter, Gauge, Registry } from "prom-client"

/** Counts what a limiter decides and how old its rules are. Whom it counts is no label: clients have no end. */
export function watchLimiter<T>(limiter: Limiter<T>, service: string, registry: Registry): void {
  const decisions = new Counter({
    name: "sluice_decisions_total",
    help: "Verdicts of each rule: admitted, refused, or shadowed where a rule in shadow would have refused.",
    labelNames: ["service", "policy", "result", "mode"],
    registers: [registry],
  })
  limiter.on("decision", ({ checks, degraded }) => {
    const mode = degraded ? "degraded" : "normal"
    for (const { policy, allowed, shadow } of checks)
      decisions.inc({ service, policy, result: allowed ? "admitted" : shadow ? "shadowed" : "refused", mode })
  })
  const rules = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      labelNames: ["service"],
      registers: [registry],
      collect() {
        this.set({ service }, read())
      },
    })
  rules("sluice_rules_age_seconds", "Since the rules were last loaded.", () => limiter.rules.ageMs / 1000)
  rules("sluice_rules_version", "Of the stored rules in force.", () => limiter.rules.version ?? 0)
  rules("sluice_rules_stale", "1 while they cannot be loaded.", () => Number(limiter.rules.isStale))
}

const RULES = [
  { name: "minute", field: "ip", limit: 10, window: "1 minute" },
  { name: "tried-out", field: "ip", limit: 3, window: "1 minute", shadow: true },
]

/** An app that tells Prometheus at /metrics what its limiter does. */
export function createApp(options: LimiterOptions<Request> = {}): Express {
  const app = express()
  const registry = new Registry()
  const limits = rateLimit({ rules: RULES, ...options })
  watchLimiter(limits.limiter, String(options.service ?? "default"), registry)
  app.get("/metrics", async (_req, res) => {
    res.type(registry.contentType).send(await registry.metrics())
  })
  app.use(limits)
  app.get("/", (_req, res) => void res.json({ hello: "world" }))
  return app
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT ?? 3000)
  createApp().listen(port, () => console.log(`Listens on http://localhost:${port}, with metrics at /metrics`))
}
