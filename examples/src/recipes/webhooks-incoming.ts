import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { rateLimit } from "@sluice/express"
import express, { type Express, type RequestHandler } from "express"
import type { Surroundings } from "../surroundings.ts"

export function createApp(
  secretOf: (sender: string) => string | undefined,
  handle: (sender: string, body: Buffer) => Promise<void>,
  surroundings: Surroundings = {},
): Express {
  const verify: RequestHandler = (req, res, next) => {
    const sender = req.get("x-sender") ?? ""
    const hmac = createHmac("sha256", secretOf(sender) ?? randomBytes(32))
    const expected = hmac.update(req.body ?? "").digest()
    const sent = Buffer.from(req.get("x-signature") ?? "", "hex")
    if (sent.length === expected.length && timingSafeEqual(sent, expected))
      res.locals.sender = sender
    next()
  }
  const limit = rateLimit({
    ...surroundings,
    name: "events",
    field: "sender",
    limit: 60,
    window: "1 minute",
    // Without a verified sender, a request counts by its address.
    fields: { sender: ({ res }) => res?.locals.sender },
    refundWhen: (_req, status) => status >= 500,
  })
  const raw = express.raw({ type: () => true })
  return express().post("/webhooks", raw, verify, limit, async (req, res) => {
    const { sender } = res.locals
    if (sender !== undefined) await handle(sender, req.body)
    res.sendStatus(sender === undefined ? 401 : 202)
  })
}
