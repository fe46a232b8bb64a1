import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"

/**
 * Your parser of phone numbers, which returns the same number for all its
 * spellings.
 */
type Parse = (
  text: string,
) => { readonly number: string; readonly country: string } | undefined
type Send = (number: string) => Promise<void>

/**
 * Creates an app that limits codes by SMS: by number, by address, by country, and
 * for the whole service.
 */
export function createApp(
  parse: Parse,
  send: Send,
  surroundings: Surroundings = {},
): Express {
  const to = ({ body }: Request) => parse(String(body?.phone))
  const fields = {
    number: (req: Request) => to(req)?.number,
    country: (req: Request) => to(req)?.country,
  }
  const overrides = { DE: 60, FR: 30 } // The countries of your users.
  const rules = [
    { name: "number", field: "number", limit: 3, window: "10 minutes" },
    { name: "address", field: "ip", limit: 10, window: "1 hour" },
    { name: "country", field: "country", limit: 5, window: "1 hour", overrides },
    {
      name: "budget",
      field: "service",
      limit: 100,
      window: "1 day",
      onStoreFailure: "deny" as const,
    },
  ]
  const codes = rateLimit({
    ...surroundings,
    fields,
    rules,
    refundWhen: (_req, status) => status !== 202,
  })
  return express().post("/codes", express.json(), codes, async (req, res) => {
    const number = to(req)?.number
    if (number !== undefined) await send(number)
    res.sendStatus(number === undefined ? 400 : 202)
  })
}
