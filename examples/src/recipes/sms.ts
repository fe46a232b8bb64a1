import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"

/** Returns the same number for all spellings, and undefined for an invalid one. */
type Parse = (text: string) => { number: string; country: string } | undefined

export function createApp(
  parse: Parse,
  send: (number: string) => Promise<void>,
  surroundings: Surroundings = {},
): Express {
  const to = ({ body }: Request) => parse(String(body?.phone))
  const hour = "1 hour"
  const overrides = { DE: 60, FR: 30 } // The countries of your users.
  const codes = rateLimit({
    ...surroundings,
    fields: {
      number: (req) => to(req)?.number,
      country: (req) => to(req)?.country,
    },
    rules: [
      { name: "number", field: "number", limit: 3, window: "10 minutes" },
      { name: "address", field: "ip", limit: 10, window: hour },
      { name: "country", field: "country", limit: 5, window: hour, overrides },
      {
        name: "budget",
        field: "service",
        limit: 100,
        window: "1 day",
        onStoreFailure: "deny",
      },
    ],
    refundWhen: (_req, status) => status !== 202,
  })
  return express().post("/codes", express.json(), codes, async (req, res) => {
    const number = to(req)?.number
    if (number !== undefined) await send(number)
    res.sendStatus(number === undefined ? 400 : 202)
  })
}
