import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { rateLimit } from "@sluice/express"
import express, { type Express, type RequestHandler } from "express"
import type { Surroundings } from "../surroundings.ts"

type SecretOf = (sender: string) => string | undefined
type Handle = (sender: string, body: Buffer) => Promise<void>

/**
 * Creates an app that limits webhooks by verified sender, and forged ones by
 * address.
 */
export function createApp(
  secretOf: SecretOf,
  handle: Handle,
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
  // A request without a verified sender counts by its address, so forgeries do not
  // use up the sender's quota.
  const fields = { sender: ({ res }: express.Request) => res?.locals.sender }
  const rate = { name: "events", field: "sender", limit: 60, window: "1 minute" }
  const limit = rateLimit({
    ...surroundings,
    ...rate,
    fields,
    refundWhen: (_req, status) => status >= 500,
  })
  return express().post(
    "/webhooks",
    express.raw({ type: () => true }),
    verify,
    limit,
    async (req, res) => {
      const { sender } = res.locals
      if (sender !== undefined) await handle(sender, req.body)
      res.sendStatus(sender === undefined ? 401 : 202)
    },
  )
}
