import { type Decision, memoryStore } from "@sluice/core"
import { type RateLimit, rateLimit } from "@sluice/express"
import express, { type Request, Router } from "express"

declare global {
  namespace Express {
    interface Request {
      /** As an app's own authentication adds it. */
      tenant?: { readonly id: number; readonly plan: "free" | "paid" }
    }
  }
}

const byTenant: RateLimit = rateLimit({
  service: "shop",
  trustedProxies: 1,
  ipv6Prefix: 56,
  store: memoryStore({ maxKeys: 10_000 }),
  headers: "draft-11",
  fields: { tenant: (req) => req.tenant?.id },
  cost: (req) => (req.method === "POST" ? 5 : 1),
  skip: (req) => req.path === "/health",
  refundWhen: (req, status) => req.method === "GET" && status >= 500,
  rules: [
    {
      name: "plan",
      field: "tenant",
      limit: (req) => (req.tenant?.plan === "paid" ? 1_000 : 100),
      window: "1 hour",
    },
    { name: "bursts", field: "ip", limit: 20, window: 1_000, algorithm: "token-bucket", burst: 40 },
    {
      name: "flow",
      field: "ip",
      limit: 5,
      window: "1s",
      throttle: { kind: "queue", maxWaitMs: 2_000 },
      shadow: true,
    },
  ],
})

const app = express()
app.use(byTenant)
app.use("/api", Router().use(rateLimit({ name: "api", limit: 10, window: "1 second" })))
app.get("/", (req, res) => {
  const decision: Decision | undefined = req.rateLimit
  res.json({
    left: decision?.remaining,
    of: decision?.limit,
    checks: decision?.checks.map(({ policy }) => policy),
  })
})

// A limiter on a route takes nothing from what the route knows of its parameters.
app.get("/tenants/:id", byTenant, (req, res) => {
  const { id }: { readonly id: string } = req.params
  res.json({ id })
})

export async function forgive(req: Request): Promise<void> {
  await byTenant.limiter.reset(req, { policies: ["plan"] })
}
byTenant.limiter.on("decision", ({ policy, allowed }, req) => console.log(policy, allowed, req.ip))

// @ts-expect-error a misspelt option is no option
rateLimit({ limit: 100, windw: "1 minute" })
// @ts-expect-error nor is a misspelt member of a rule
rateLimit({ rules: [{ limit: 100, window: "1 minute", algoritm: "sliding-log" }] })
// @ts-expect-error a limit is a number, or a function of the request
rateLimit({ limit: "100", window: "1 minute" })
// @ts-expect-error what a field is of has what the app's requests have, and nothing else
rateLimit({ limit: 100, window: "1 minute", fields: { tenant: (req) => req.tennant } })
// @ts-expect-error an algorithm is one that there is
rateLimit({ limit: 100, window: "1 minute", algorithm: "sliding" })
app.get("/wrong", (req, res) => {
  // @ts-expect-error the decision's members are known
  res.json(req.rateLimit?.remainder)
})
