import { once } from "node:events"
import type { Decision, Extractor } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"
import { usageIn } from "./llm-usage.ts"

/** Calls the model, which returns at most 1,000 tokens. */
type Ask = (body: object, signal: AbortSignal) => Promise<globalThis.Response>

export function createApp(
  ask: Ask,
  account: Extractor<Request>,
  surroundings: Surroundings = {},
): Express {
  const field = "account"
  const limit = rateLimit({
    ...surroundings,
    fields: { account },
    // A token has at least one byte.
    units: {
      tokens: ({ body }) => Buffer.byteLength(JSON.stringify(body)) + 1_000,
    },
    rules: [
      { name: "rpm", field, limit: 60, window: "1 minute" },
      { name: "tpm", field, limit: 10_000, window: "1 minute", counts: "tokens" },
      { name: "streams", field, concurrent: 5 },
    ],
    refundWhen: (_req, status) => status >= 400,
  })
  return express().post("/chat", express.json(), limit, async (req, res) => {
    const hangUp = new AbortController()
    res.once("close", () => hangUp.abort())
    const { ok, status, headers, body } = await ask(req.body, hangUp.signal)
    res.status(status).type(headers.get("content-type") ?? "text/plain")
    const decoder = new TextDecoder()
    let text = ""
    for await (const piece of body ?? []) {
      text += decoder.decode(piece, { stream: true })
      if (!res.write(piece)) await once(res, "drain", hangUp)
    }
    res.end()
    // Without a complete response, such as after a hang-up, the estimate stays.
    const tokens = ok ? usageIn(text) : undefined
    const decision = limit.limiter.decisionOn(req) as Decision
    if (tokens !== undefined) await limit.limiter.settle(decision, { tokens })
  })
}
