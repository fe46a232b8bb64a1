import type { Decision, Rejection } from "@sluice/core"
import express, { type Request, type Response } from "express"
import { expectTypeOf } from "vitest"
import { rateLimit } from "./index.ts"

// Compiled by the type checker, never run.

const app = express()

app.use(
  rateLimit({
    limit: 100,
    window: "1 minute",
    onRejected: (req, rejection, decision, res) => {
      expectTypeOf(req).toEqualTypeOf<Request>()
      expectTypeOf(rejection).toEqualTypeOf<Rejection>()
      expectTypeOf(decision).toEqualTypeOf<Decision>()
      expectTypeOf(res).toEqualTypeOf<Response>()
      res.status(429).json({ error: "slow down" })
      return false
    },
  }),
)
// @ts-expect-error: a limit needs a window
app.use(rateLimit({ limit: 100 }))
// @ts-expect-error: a window needs a limit
app.use(rateLimit({ window: "1 minute" }))
// @ts-expect-error: a rule of a list needs a field
app.use(rateLimit({ rules: [{ limit: 100, window: "1 minute" }] }))
