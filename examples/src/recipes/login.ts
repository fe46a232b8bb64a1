import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"

/** A function that resolves with true if the password is correct. */
type Check = (email: string, password: string) => Promise<boolean>

/**
 * Creates an app that limits wrong passwords by account, by address, and by both
 * together.
 */
export function createApp(check: Check, surroundings: Surroundings = {}): Express {
  // Normalize the spelling. Otherwise each spelling of an account allows more
  // guesses.
  const accountOf = ({ body }: Request) => String(body?.email).trim().toLowerCase()
  const penalty = {
    refusals: 5,
    within: "1 hour",
    for: ["30 minutes", "2 hours", "12 hours"],
  }
  const guesses = rateLimit({
    ...surroundings,
    fields: { account: accountOf },
    rules: [
      {
        name: "login",
        field: ["ip", "account"],
        limit: 5,
        window: "15 minutes",
        penalty,
      },
      { name: "address", field: "ip", limit: 30, window: "15 minutes", penalty },
      // No penalty: anyone can guess at an account, and must not be able to lock
      // its owner out for long.
      { name: "account", field: "account", limit: 50, window: "1 hour" },
    ],
    // Each guess is charged before the check, so parallel guesses do not exceed a
    // limit. Only wrong ones stay charged.
    refundWhen: (_req, status) => status !== 401,
  })
  return express().post("/login", express.json(), guesses, async (req, res) => {
    const isRight = await check(accountOf(req), String(req.body?.password))
    res.status(isRight ? 200 : 401).json({ welcome: isRight })
  })
}
