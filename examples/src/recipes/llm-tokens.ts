import { createLimiter, type Decision, type Extractor } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"

/** Streams at most 1,000 tokens. `tokens` is the number so far, with the prompt. */
type Ask = (
  prompt: string,
  signal: AbortSignal,
) => AsyncIterable<{ text: string; tokens: number }>

/** Creates a chat that limits the requests and the tokens of each account. */
export function createApp(
  ask: Ask,
  account: Extractor<Request>,
  surroundings: Surroundings = {},
): Express {
  const limiter = createLimiter<Request>({
    ...surroundings,
    fields: { account },
    // A token has at least one byte.
    units: {
      tokens: ({ body }) => Buffer.byteLength(String(body?.prompt)) + 1_000,
    },
    rules: [
      { name: "requests", field: "account", limit: 60, window: "1 minute" },
      {
        name: "tokens",
        field: "account",
        counts: "tokens",
        limit: 10_000,
        window: "1 minute",
      },
    ],
  })
  const limit = rateLimit({ limiter })
  return express().post("/chat", express.json(), limit, async (req, res) => {
    const hangUp = new AbortController()
    res.once("close", () => hangUp.abort())
    let used = 0
    try {
      for await (const piece of ask(String(req.body?.prompt), hangUp.signal)) {
        used = piece.tokens
        res.write(piece.text)
      }
      res.end()
    } finally {
      // Settle also if the client has hung up or the model has failed.
      const decision = limiter.decisionOn(req) as Decision
      await limiter.settle(decision, { tokens: used })
    }
  })
}
