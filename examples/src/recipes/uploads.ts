import { rateLimit } from "@sluice/express"
import express, { type Express, type RequestHandler } from "express"
import type { Surroundings } from "../surroundings.ts"

/** Creates an app that limits the megabytes that an address uploads. */
export function createApp(
  save: RequestHandler,
  surroundings: Surroundings = {},
): Express {
  const limit = rateLimit({
    ...surroundings,
    name: "megabytes",
    limit: 100,
    window: "1 hour",
    // Node reads no more of a body than its Content-Length.
    cost: (req) =>
      Math.max(1, Math.ceil(Number(req.get("content-length")) / 1_000_000)),
  })
  const requireLength: RequestHandler = (req, res, next) => {
    if (req.get("content-length") === undefined) res.sendStatus(411)
    else next()
  }
  return express().post("/files", requireLength, limit, save)
}
