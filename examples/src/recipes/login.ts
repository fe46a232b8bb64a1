import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"

export function createApp(
  check: (email: string, password: string) => Promise<boolean>,
  surroundings: Surroundings = {},
): Express {
  // Otherwise each spelling of an account allows more guesses.
  const accountOf = ({ body }: Request) => String(body?.email).trim().toLowerCase()
  const window = "15 minutes"
  const steps = ["30 minutes", "2 hours", "12 hours"]
  const penalty = { refusals: 5, within: "1 hour", for: steps }
  const guesses = rateLimit({
    ...surroundings,
    fields: { account: accountOf },
    rules: [
      { name: "login", field: ["ip", "account"], limit: 5, window, penalty },
      { name: "address", field: "ip", limit: 30, window, penalty },
      // No penalty: a block would lock out the owner of the account for longer.
      { name: "account", field: "account", limit: 50, window: "1 hour" },
    ],
    // Charging before the check limits parallel guesses, too.
    refundWhen: (_req, status) => status !== 401,
  })
  return express().post("/login", express.json(), guesses, async (req, res) => {
    const isRight = await check(accountOf(req), String(req.body?.password))
    res.status(isRight ? 200 : 401).json({ welcome: isRight })
  })
}
