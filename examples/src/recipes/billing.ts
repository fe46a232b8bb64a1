import { rateLimit } from "@sluice/express"
import { type DecisionSink, recordDecisions } from "@sluice/recording"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"

const PLANS = {
  starter: { cents: 2_900, pages: 1_000 },
  scale: { cents: 9_900, pages: 10_000 },
}
const CENTS_PER_PAGE = 2

export interface Account {
  readonly id: string
  readonly plan: keyof typeof PLANS
  /** The day of the month of the sign-up. */
  readonly renewsOn: number
}

export function createApp(
  accountOf: (req: Request) => Account,
  sink: DecisionSink,
  surroundings: Surroundings = {},
): Express {
  const { clock } = surroundings
  const limits = rateLimit({
    ...surroundings,
    name: "monthly",
    field: "account",
    fields: { account: (req) => accountOf(req).id },
    limit: (req) => PLANS[accountOf(req).plan].pages,
    per: "month",
    timeZone: "Europe/Berlin",
    anchor: (req) => accountOf(req).renewsOn,
    throttle: { kind: "soft", percent: 5 },
    cost: (req) => Number(req.query.pages),
  })
  const { limiter } = limits
  const app = express()
  // Close it when the app stops.
  app.locals.recorder = recordDecisions(limiter, sink, { clock })
  // Before the limiter, so that these requests are not counted.
  app.get("/usage", async (req, res) => void res.json(await limiter.usage(req)))
  app.post("/more-pages", async (req, res) => {
    await limiter.grant(req, 5_000)
    res.sendStatus(204)
  })
  return app.use(limits).post("/render", (_req, res) => void res.sendStatus(202))
}

/** Returns an invoice in cents. `sluice usage` lists `used` and `granted`. */
export function invoiceOf(plan: Account["plan"], used: number, granted: number) {
  const { cents, pages } = PLANS[plan]
  const above = Math.max(0, used - pages - granted)
  const lines = [
    { text: `plan ${plan}`, cents },
    { text: `${granted} more pages`, cents: granted * CENTS_PER_PAGE },
    { text: `${above} pages above the limit`, cents: above * CENTS_PER_PAGE },
  ]
  return { lines, cents: lines.reduce((sum, line) => sum + line.cents, 0) }
}
