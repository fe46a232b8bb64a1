import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"

/** A function that resolves with true if the password is correct. */
type CheckPassword = (email: string, password: string) => Promise<boolean>

const emailOf = ({ body }: Request): string | undefined =>
  typeof body?.email === "string" ? body.email.trim() : undefined

/** Creates an app with a limit on `POST /login`: five wrong passwords per minute for each account and address. */
export function createApp(checkPassword: CheckPassword, surroundings: Surroundings = {}): Express {
  const app = express()
  // Parse the body first, because the limiter reads it.
  app.use(express.json())

  const guesses = rateLimit({
    ...surroundings,
    name: "login",
    // Count by both. By address alone, one user could lock out a whole office. By account alone, anyone could lock out
    // another user.
    field: ["ip", "account"],
    // Normalize the spelling. Otherwise every other spelling of an account would allow five more guesses.
    fields: { account: (req) => emailOf(req)?.toLowerCase() },
    limit: 5,
    window: "1 minute",
    // Each guess is charged before the password is checked, and refunded if it was correct. So parallel guesses cannot
    // exceed the limit.
    refundWhen: (_req, status) => status < 400,
  })

  app.post("/login", guesses, async (req, res) => {
    const isRight = await checkPassword(emailOf(req) ?? "", String(req.body?.password ?? ""))
    res.status(isRight ? 200 : 401).json({ welcome: isRight })
  })
  return app
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT || 3000)
  const app = createApp(async (_email, password) => password === "correct horse")
  app.listen(port).once("listening", () => console.log(`Listens on http://localhost:${port}`))
}
