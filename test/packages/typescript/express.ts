import { type Decision, memoryStore } from "@sluice/core"
import { type RateLimit, rateLimit } from "@sluice/express"
import express, { type Request, Router } from "express"

declare global {
  namespace Express {
    interface Request {
      /** An app's own authentication adds this. */
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

// A limiter on a route does not affect the types of the route's parameters.
app.get("/tenants/:id", byTenant, (req, res) => {
  const { id }: { readonly id: string } = req.params
  res.json({ id })
})

export async function forgive(req: Request): Promise<void> {
  await byTenant.limiter.reset(req, { rules: ["plan"] })
}
byTenant.limiter.on("decision", ({ policy, allowed }, req) => console.log(policy, allowed, req.ip))

// @ts-expect-error a misspelled option is not valid
rateLimit({ limit: 100, windw: "1 minute" })
// @ts-expect-error a misspelled member of a rule is not valid
rateLimit({ rules: [{ limit: 100, window: "1 minute", algoritm: "sliding-log" }] })
// @ts-expect-error a limit is a number, or a function of the request
rateLimit({ limit: "100", window: "1 minute" })
// @ts-expect-error a field's function gets the app's requests, which lack this member
rateLimit({ limit: 100, window: "1 minute", fields: { tenant: (req) => req.tennant } })
// @ts-expect-error only existing algorithms are valid
rateLimit({ limit: 100, window: "1 minute", algorithm: "sliding" })
app.get("/wrong", (req, res) => {
  // @ts-expect-error a decision does not have this member
  res.json(req.rateLimit?.remainder)
})
