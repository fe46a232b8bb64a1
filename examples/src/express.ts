import type { LimiterOptions } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import { sharedStore } from "./shared-store.ts"

/** An app with a limit for all of it and a stricter one for a dear route. Tests and the demo set the options. */
export function createApp(
  options: Pick<LimiterOptions<Request>, "clock" | "service" | "store" | "trustedProxies"> = {},
): Express {
  const app = express()
  app.use(rateLimit({ ...options, limit: 100, window: "1 minute" }))

  app.get("/", (req, res) => {
    res.json({ hello: "world", remaining: req.rateLimit?.remaining })
  })

  // Only who gets past the app's limit asks for this one; a search takes from both.
  const searches = rateLimit({ ...options, name: "search", limit: 3, window: "1 second" })
  app.get("/search", searches, (req, res) => {
    res.json({ found: [], remaining: req.rateLimit?.remaining })
  })
  return app
}

// Started, not imported. TRUSTED_PROXIES is how many proxies stand in front: often 1 in production. With REDIS_URL all
// instances count together.
if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT ?? 3000)
  const app = createApp({ ...sharedStore(), trustedProxies: Number(process.env.TRUSTED_PROXIES ?? 0) })
  app.listen(port, () => console.log(`Express listens on http://localhost:${port}`))
}
