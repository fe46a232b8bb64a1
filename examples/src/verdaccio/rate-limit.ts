import { addressGroup } from "@sluice/core"
import { rateLimit as sluice } from "@sluice/express"

type Options = { max: number; windowMs: number; message?: string }
const MESSAGE = "Too many requests, please try again later."

export function rateLimit({ max, windowMs, message = MESSAGE }: Options) {
  const limiter = sluice({
    limit: max,
    window: windowMs,
    headers: "legacy",
    rejection: { body: message },
    skip: async () => false, // Otherwise the web login responds 404: it needs a limiter that calls next later.
    field: "client",
    fields: { client: (req) => addressGroup(req.ip) },
  })
  return limiter
}
