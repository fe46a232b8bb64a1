import { rateLimit } from "@sluice/koa"
import Koa, { type Context } from "koa"
import type { Surroundings } from "../surroundings.ts"
import { accountOf } from "./authentication.ts"

// A client without a plan gets the free plan. If no rule matched, there would be no limit.
const planOf = (ctx: Context): string => accountOf(ctx.get("authorization"))?.plan ?? "free"

/** Creates an app with limits on `GET /reports`: 10 per minute on the free plan, and 100 on the pro plan. */
export function createApp(surroundings: Surroundings = {}): Koa {
  const app = new Koa()
  const account = { field: "account", window: "1 minute" }
  const limits = rateLimit({
    ...surroundings,
    // Requests without an account are counted by address, the default for a missing field.
    fields: { account: (ctx) => accountOf(ctx.get("authorization"))?.id, plan: planOf },
    rules: [
      { ...account, name: "free", limit: 10, match: { fields: { plan: ["free"] } } },
      { ...account, name: "pro", limit: 100, match: { fields: { plan: ["pro"] } } },
    ],
  })
  app.use(limits)
  app.use((ctx) => {
    if (ctx.path === "/reports") ctx.body = { plan: planOf(ctx) }
  })
  return app
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT || 3000)
  createApp()
    .listen(port)
    .once("listening", () => console.log(`Listens on http://localhost:${port}`))
}
