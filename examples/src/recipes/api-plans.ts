import { rateLimit } from "@sluice/koa"
import Koa, { type Context, type Middleware } from "koa"
import { type Account, accountOf } from "../authentication.ts"
import type { Surroundings } from "../surroundings.ts"

const PLANS = {
  free: { minute: 10, month: 1_000 },
  pro: { minute: 60, month: 50_000 },
}

/**
 * Creates an API that limits each account by minute and by month. The limits are
 * those of its plan or contract.
 */
export function createApp(
  handler: Middleware,
  surroundings: Surroundings = {},
): Koa {
  const planOf = ({ state }: Context) => PLANS[(state.account as Account).plan]
  // Overrides are contracts, here with the account cyd.
  const minute = { name: "minute", window: "1 minute", overrides: { cyd: 100 } }
  const month = { name: "month", window: "30 days", overrides: { cyd: 1_000_000 } }
  const limit = rateLimit({
    ...surroundings,
    fields: { account: ({ state }) => state.account.id },
    cost: ({ path }) => (path === "/exports" ? 5 : 1),
    rules: [
      { ...minute, field: "account", limit: (ctx: Context) => planOf(ctx).minute },
      {
        ...month,
        field: "account",
        limit: (ctx: Context) => planOf(ctx).month,
        algorithm: "fixed-window",
      },
    ],
    refundWhen: (_ctx, status) => status >= 500, // Our errors cost nothing.
  })
  const authenticate: Middleware = (ctx, next) => {
    ctx.state.account = accountOf(ctx.get("authorization")) ?? ctx.throw(401)
    return next()
  }
  return new Koa().use(authenticate).use(limit).use(handler)
}
