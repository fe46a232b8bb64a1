import { rateLimit } from "@sluice/express"
import express, { type Express, type RequestHandler } from "express"
import type { Surroundings } from "../surroundings.ts"

export function createApp(
  save: RequestHandler,
  surroundings: Surroundings = {},
): Express {
  const limit = rateLimit({
    ...surroundings,
    name: "uploads",
    counts: "bytes",
    limit: 100_000_000,
    window: "1 hour",
    // Node reads no more of a body than its Content-Length.
    units: { bytes: (req) => Number(req.get("content-length")) },
  })
  const requireLength: RequestHandler = (req, res, next) => {
    if (req.get("content-length") === undefined) res.sendStatus(411)
    else next()
  }
  return express().post("/files", requireLength, limit, save)
}
