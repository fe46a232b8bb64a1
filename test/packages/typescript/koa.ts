import type { Decision } from "@sluice/core"
import { type RateLimitState, rateLimit } from "@sluice/koa"
import { staticRules } from "@sluice/rules"
import Koa, { type Context } from "koa"

declare module "koa" {
  interface DefaultState {
    /** An app's own authentication adds this. */
    tenant?: { readonly id: string }
  }
}

const limit = rateLimit({
  rules: staticRules([{ name: "tenants", field: "tenant", onMissing: "ip", limit: 100, window: "1 minute" }]),
  fields: { tenant: (ctx) => (ctx.state.tenant as { readonly id: string } | undefined)?.id },
  onRejected: (ctx, { status }, { retryAfterMs }) => {
    ctx.status = status
    ctx.body = { wait: retryAfterMs }
  },
})

const app = new Koa()
app.use(limit)
app.use(async (ctx, next) => {
  const decision: Decision | undefined = ctx.state.rateLimit
  ctx.set("X-Left", String(decision?.remaining))
  // @ts-expect-error a decision does not have this member
  ctx.set("X-Wrong", String(ctx.state.rateLimit?.remainder))
  await next()
})
export const left = (ctx: Context): Promise<Decision> => limit.limiter.peek(ctx)

interface State {
  readonly user: { readonly id: string }
}
const stated = new Koa<State & RateLimitState>()
stated.use(limit)
stated.use((ctx) => {
  const left: number | undefined = ctx.state.rateLimit?.remaining
  ctx.body = { left, user: ctx.state.user.id }
  // @ts-expect-error the app's own state does not have this member
  ctx.body = ctx.state.users
})

// @ts-expect-error a misspelled option is not valid
rateLimit({ limit: 100, windw: "1 minute" })
// @ts-expect-error a window is a number of milliseconds, or a string
rateLimit({ limit: 100, window: true })
// @ts-expect-error only existing header dialects are valid
rateLimit({ limit: 100, window: "1 minute", headers: "draft-7" })
