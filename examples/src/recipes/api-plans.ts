import { rateLimit } from "@sluice/koa"
import Koa, { type Context, type Middleware } from "koa"
import { type Account, accountOf } from "../authentication.ts"
import type { Surroundings } from "../surroundings.ts"

const PLANS = {
  free: { minute: 10, month: 1_000 },
  pro: { minute: 60, month: 50_000 },
}

export function createApp(
  handler: Middleware,
  surroundings: Surroundings = {},
): Koa {
  const planOf = ({ state }: Context) => PLANS[(state.account as Account).plan]
  const field = "account"
  const limit = rateLimit({
    ...surroundings,
    fields: { account: ({ state }) => state.account.id },
    rules: [
      {
        name: "minute",
        field,
        limit: (ctx: Context) => planOf(ctx).minute,
        window: "1 minute",
      },
      {
        name: "month",
        field,
        limit: (ctx: Context) => planOf(ctx).month,
        window: "30 days",
        algorithm: "fixed-window",
      },
    ],
  })
  const authenticate: Middleware = (ctx, next) => {
    ctx.state.account = accountOf(ctx.get("authorization")) ?? ctx.throw(401)
    return next()
  }
  return new Koa().use(authenticate).use(limit).use(handler)
}
