import { createLimiter, type Limiter, type LimiterOptions } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import { fileRules } from "@sluice/rules"
import express, { type Express, type Request } from "express"

const RULES = new URL("./rules.yaml", import.meta.url)

/** Creates an app whose rules are in a file that may change while it runs. The limiter reports each change. */
export function createApp(
  path: string | URL = RULES,
  options: Pick<LimiterOptions<Request>, "clock" | "logger"> = {},
): { readonly app: Express; readonly limiter: Limiter<Request> } {
  // Throws if the file is missing or has an invalid rule, so that the server does not start. Later, an invalid file
  // changes nothing: the previous rules stay in force, and the log contains the problem.
  const limiter = createLimiter<Request>({ ...options, service: "shop", rules: fileRules(path) })
  limiter.on("rules", ({ names }) => console.log(`Rules in force: ${names.join(", ")}`))

  const app = express()
  app.use(rateLimit({ limiter }))
  app.get("/", (_req, res) => void res.json({ hello: "world" }))
  app.post("/checkout", (_req, res) => void res.status(201).json({ ordered: true }))
  return { app, limiter }
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT || 3000)
  const { app } = createApp()
  app
    .listen(port)
    .once("listening", () => console.log(`Listens on http://localhost:${port}; now edit src/rules.yaml`))
}
