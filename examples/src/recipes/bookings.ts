import { rateLimit } from "@sluice/express"
import express, { type Express } from "express"
import type { Surroundings } from "../surroundings.ts"

/**
 * Creates an app with a limit on `POST /bookings`: ten per minute for each address.
 * Reading is not limited.
 */
export function createApp(surroundings: Surroundings = {}): Express {
  const tenAMinute = rateLimit({
    ...surroundings,
    name: "bookings",
    limit: 10,
    window: "1 minute",
    // In addition to Retry-After, this tells client programs how to retry.
    rejectionMessage: "retry-with-fixed-time",
  })
  const app = express()
  app.get("/bookings", (_req, res) => void res.json([]))
  // The limit is on the route, so that it counts no other requests.
  app.post(
    "/bookings",
    tenAMinute,
    (_req, res) => void res.status(201).json({ booked: true }),
  )
  return app
}
