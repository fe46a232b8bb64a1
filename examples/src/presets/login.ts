import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Surroundings } from "../surroundings.ts"

/** Whether the password is right. */
type CheckPassword = (email: string, password: string) => Promise<boolean>

const emailOf = ({ body }: Request): string | undefined =>
  typeof body?.email === "string" ? body.email.trim() : undefined

/** `POST /login`: five wrong passwords a minute for an account from an address. */
export function createApp(checkPassword: CheckPassword, surroundings: Surroundings = {}): Express {
  const app = express()
  // Before the limiter, which reads the body.
  app.use(express.json())

  const guesses = rateLimit({
    ...surroundings,
    name: "login",
    // Both together: by address alone an office would be locked out by one user, and by account alone anybody could
    // lock out somebody else.
    field: ["ip", "account"],
    // One spelling, or every other spelling of an account would be five more guesses.
    fields: { account: (req) => emailOf(req)?.toLowerCase() },
    limit: 5,
    window: "1 minute",
    // Each guess is charged before the password is looked at, and given back when it was right: guesses sent at the
    // same time cannot slip through together.
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
