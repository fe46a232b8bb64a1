import { rateLimit } from "@sluice/express"
import express, { type Express } from "express"
import type { Surroundings } from "../surroundings.ts"

/** `POST /bookings`: ten a minute for an address. Looking at them is free. */
export function createApp(surroundings: Surroundings = {}): Express {
  const app = express()
  const tenAMinute = rateLimit({
    ...surroundings,
    name: "bookings",
    limit: 10,
    window: "1 minute",
    // Tells a client's program, beside Retry-After, how to go on.
    rejectionMessage: "retry-with-fixed-time",
  })

  app.get("/bookings", (_req, res) => void res.json([]))
  // On the route, so that it counts nothing else.
  app.post("/bookings", tenAMinute, (_req, res) => void res.status(201).json({ booked: true }))
  return app
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT || 3000)
  createApp()
    .listen(port)
    .once("listening", () => console.log(`Listens on http://localhost:${port}`))
}
