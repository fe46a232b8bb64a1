import { createLimiter, type Decision, type Extractor } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"

/**
 * Streams an answer of at most 1,000 tokens. `tokens` is the number of all tokens
 * so far, including the prompt.
 */
type Ask = (
  prompt: string,
  signal: AbortSignal,
) => AsyncIterable<{ text: string; tokens: number }>

/**
 * Creates a chat that limits the tokens of each account. `account` reads the
 * account of an authenticated request.
 */
export function createApp(
  ask: Ask,
  account: Extractor<Request>,
  surroundings: Surroundings = {},
): Express {
  // Reserve the most that a request can cost. A token has at least one byte.
  const cost = ({ body }: Request) =>
    Buffer.byteLength(String(body?.prompt)) + 1_000
  const rate = {
    name: "tokens",
    field: "account",
    limit: 10_000,
    window: "1 minute",
  }
  const limiter = createLimiter<Request>({
    ...surroundings,
    ...rate,
    fields: { account },
    cost,
  })
  return express().post(
    "/chat",
    express.json(),
    rateLimit({ limiter }),
    async (req, res) => {
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
        // Settle the real number, also if the client has hung up or the model has
        // failed.
        await limiter.settle(limiter.decisionOn(req) as Decision, used)
      }
    },
  )
}
