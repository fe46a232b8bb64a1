import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/express"
import express from "express"
import { expect, it } from "vitest"
import { listening } from "../servers/listening.ts"
import { at, inMemoryAndRedis, SECOND, START_MS } from "./example.ts"

// The three messages of the document, over real HTTP. docs/inside/worked-examples.md lists the messages by the
// beginning of their title.

const MESSAGES = [
  [
    "retry-with-exponential-backoff",
    { name: "per-user", limit: 5, window: "1 minute" },
    49,
    {
      kind: "exponential-backoff",
      initialDelaySeconds: 49,
      multiplier: 2,
      maxDelaySeconds: 60,
      jitter: 0.5,
    },
  ],
  [
    "retry-with-fixed-time",
    { name: "bookings", limit: 10, window: "1 minute" },
    49,
    { kind: "fixed", afterSeconds: 49 },
  ],
  [
    "exhausted-daily-limit",
    { name: "daily", limit: 10, window: "1 day" },
    13_009,
    { kind: "at", at: "2024-01-02T00:00:01.000Z", afterSeconds: 13_009 },
  ],
] as const

inMemoryAndRedis((open) => {
  it.each(MESSAGES)(
    "three messages: %s states when a client that is refused at 20:23:12 is admitted",
    async (rejectionMessage, rule, seconds, retry) => {
      const clock = manualClock(START_MS + at("20:23:12"))
      const app = express()
      const limits = rateLimit({
        rules: [{ ...rule, field: "header:user-id", rejectionMessage }],
        service: "example",
        store: open(clock),
        storeTimeoutMs: 20_000,
        clock,
      })
      app.use(limits)
      app.get("/", (_req, res) => void res.send("ok"))
      const url = await listening(app)
      const ask = (user: string) => fetch(url, { headers: { "user-id": user } })

      for (let i = 0; i < rule.limit; i++) expect((await ask("ada")).status).toBe(200)
      const refused = await ask("ada")
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, `${seconds}`])
      expect(await refused.json()).toMatchObject({
        ...{ status: 429, "violated-policies": [rule.name] },
        ...{ rejection: rejectionMessage, retry },
      })

      expect((await ask("bob")).status).toBe(200)
      clock.advance(seconds * SECOND)
      expect((await ask("ada")).status).toBe(200)
    },
  )
})
