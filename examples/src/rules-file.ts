import { createLimiter, fileRules, type Limiter, type LimiterOptions } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"

const RULES = new URL("./rules.yaml", import.meta.url)

/** An app whose rules are in a file that may change while it runs. The limiter tells of each change. */
export async function createApp(
  path: string | URL = RULES,
  options: Pick<LimiterOptions<Request>, "clock" | "logger"> = {},
): Promise<{ readonly app: Express; readonly limiter: Limiter<Request> }> {
  const limiter = createLimiter<Request>({ ...options, service: "shop", rules: fileRules(path) })
  limiter.on("rules", ({ names }) => console.log(`Rules in force: ${names.join(", ")}`))
  // Without rules everybody would be admitted: a server that cannot read them does not start. Later on a broken file
  // changes nothing: the last good rules stay, and a warning says what is wrong.
  await limiter.ready()

  const app = express()
  app.use(rateLimit({ limiter }))
  app.get("/", (_req, res) => void res.json({ hello: "world" }))
  app.post("/checkout", (_req, res) => void res.status(201).json({ ordered: true }))
  return { app, limiter }
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT || 3000)
  const { app } = await createApp()
  app
    .listen(port)
    .once("listening", () => console.log(`Listens on http://localhost:${port}; now edit src/rules.yaml`))
}
