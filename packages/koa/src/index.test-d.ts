import Koa, { type Context } from "koa"
import { expectTypeOf } from "vitest"
import { rateLimit } from "./index.ts"

// The type checker compiles this file, but it is never run.

const app = new Koa()

app.use(
  rateLimit({
    limit: 100,
    window: "1 minute",
    onRejected: (ctx, _rejection, _decision, response) => {
      expectTypeOf(ctx).toEqualTypeOf<Context>()
      expectTypeOf(response).toEqualTypeOf<Context>()
      response.body = { error: "slow down" }
    },
  }),
)
// @ts-expect-error: a limit needs a window
app.use(rateLimit({ limit: 100 }))
