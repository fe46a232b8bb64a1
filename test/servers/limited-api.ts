import type { RateRule } from "@sluice/core/adapters"
import { rateLimit } from "@sluice/express"
import express from "express"
import { listen } from "../contracts/adapter/listen.ts"

/** An HTTP API behind a limiter, and the numbers of its responses so far. */
export interface LimitedApi {
  readonly url: string
  readonly admitted: number
  readonly refused: number
  close(): Promise<void>
}

/** Starts an API that responds to every path with `{ "ok": true }`, or with 429. All clients share one count. */
export async function startLimitedApi(
  rule: Pick<RateRule, "limit" | "window" | "algorithm">,
): Promise<LimitedApi> {
  const counts = { admitted: 0, refused: 0 }
  const limit = rateLimit({ rules: [{ ...rule, field: "service" }] })
  limit.limiter.on("decision", ({ allowed }) => void counts[allowed ? "admitted" : "refused"]++)
  const app = express()
  app.use(limit)
  app.use((_req, res) => void res.json({ ok: true }))
  const { url, close } = await listen(app)
  return {
    url,
    get admitted() {
      return counts.admitted
    },
    get refused() {
      return counts.refused
    },
    async close() {
      await close()
      await limit.limiter.close()
    },
  }
}
