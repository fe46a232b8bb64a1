import { dashboard } from "@sluice/dashboard"
import { rateLimit } from "@sluice/express"
import express, { type Express } from "express"
import { logRequest, type WriteLine } from "./log-request.ts"
import { fromEnvironment, type Surroundings } from "./surroundings.ts"

/**
 * Creates an app with a limit for all routes, a stricter limit for an expensive route, and a page that shows who is
 * refused. With `log`, the app writes a line for each request.
 */
export function createApp(surroundings: Surroundings = {}, log?: WriteLine): Express {
  const all = rateLimit({ ...surroundings, limit: 100, window: "1 minute" })
  // A search counts against both limits, unless the app's limit has refused it.
  const searches = rateLimit({ ...surroundings, name: "search", limit: 3, window: "1 second" })

  const app = express()
  // Only a browser on this machine can open the page, so the page shows addresses plainly.
  app.use("/limits", dashboard([all.limiter, searches.limiter], { keys: "shown" }))
  app.use((req, res, next) => {
    logRequest(log, req, res, () => req.rateLimit)
    next()
  })
  app.use(all)

  app.get("/", (req, res) => {
    res.json({ hello: "world", remaining: req.rateLimit?.remaining })
  })

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
