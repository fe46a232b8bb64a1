import { rateLimit } from "@sluice/express"
import express, { type Express } from "express"
import { logRequest, type WriteLine } from "./log-request.ts"
import { fromEnvironment, type Surroundings } from "./surroundings.ts"

/**
 * Creates an app with a limit for all routes, and a stricter limit for an expensive route. With `log`, the app writes
 * a line for each request.
 */
export function createApp(surroundings: Surroundings = {}, log?: WriteLine): Express {
  const app = express()
  app.use((req, res, next) => {
    logRequest(log, req, res, () => req.rateLimit)
    next()
  })
  app.use(rateLimit({ ...surroundings, limit: 100, window: "1 minute" }))

  app.get("/", (req, res) => {
    res.json({ hello: "world", remaining: req.rateLimit?.remaining })
  })

  // A search counts against both limits, unless the app's limit has refused it.
  const searches = rateLimit({ ...surroundings, name: "search", limit: 3, window: "1 second" })
  app.get("/search", searches, (req, res) => {
    res.json({ found: [], remaining: req.rateLimit?.remaining })
  })
  return app
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT || 3000)
  createApp(fromEnvironment(), console.log)
    .listen(port)
    .once("listening", () => console.log(`Express listens on http://localhost:${port}`))
}
