import type { Clock } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express, { type Express } from "express"

/** Calls per second that a client may make. An idle client may make the same number of calls in one burst. */
const LIMIT = 50

/** How a client has used its limit. */
export interface Usage {
  readonly admitted: number
  readonly refused: number
  /** The number of calls that the limit would have admitted between the first and the last call. */
  readonly possible: number
}

/** Creates the API of a supplier, with a limit for each client. `/usage` is not limited. */
export function createSupplier(options: { readonly clock?: Clock } = {}): Express {
  const app = express()
  const usage = { admitted: 0, refused: 0, possible: LIMIT }
  let firstMs: number | undefined
  app.get("/usage", (_req, res) => void res.json(usage satisfies Usage))

  const limit = rateLimit({ ...options, limit: LIMIT, window: "1 second", algorithm: "token-bucket" })
  limit.limiter.on("decision", ({ allowed }) => {
    usage[allowed ? "admitted" : "refused"]++
    const nowMs = performance.now()
    firstMs ??= nowMs
    usage.possible = LIMIT + (LIMIT * (nowMs - firstMs)) / 1_000
  })
  app.use(limit)
  app.get("/products/:id", (req, res) => void res.json({ id: Number(req.params.id) }))
  return app
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT || 3000)
  createSupplier()
    .listen(port)
    .once("listening", () => console.log(`The supplier listens on http://localhost:${port}`))
}
