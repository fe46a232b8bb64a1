import type { Decision, Rejection } from "@sluice/core"
import express, { type Request, type Response } from "express"
import { expectTypeOf } from "vitest"
import { rateLimit } from "./index.ts"

// The type checker compiles this file, but it is never run.

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
// @ts-expect-error: a rule in a list requires a field
app.use(rateLimit({ rules: [{ limit: 100, window: "1 minute" }] }))
// @ts-expect-error: an environment variable may be undefined
app.use(rateLimit({ limit: 100, window: process.env.WINDOW }))

app.use(rateLimit({ limit: 1, window: 1000, onRejected: (_req, _rejection, _decision, res) => res.end() }))
app.use(
  rateLimit({
    limit: 1,
    window: 1000,
    onRejected: (_req, _rejection, _decision, res) => res.status(402).json({}),
  }),
)
app.use(
  rateLimit({
    limit: 1,
    window: 1000,
    onRejected: async (_req, _rejection, _decision, res) => res.status(402).json({}),
  }),
)
// @ts-expect-error: a string is not a response
app.use(rateLimit({ limit: 1, window: 1000, onRejected: () => "slow down" }))
