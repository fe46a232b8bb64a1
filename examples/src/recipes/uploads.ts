import { rateLimit } from "@sluice/express"
import express, { type Express, type Request, type RequestHandler } from "express"
import type { Surroundings } from "../surroundings.ts"

const MEGABYTE = 1_000_000

/**
 * Creates an app that limits the megabytes that an address uploads, before it reads
 * them.
 */
export function createApp(
  save: RequestHandler,
  surroundings: Surroundings = {},
): Express {
  // Node reads no more of a body than its Content-Length, so a client cannot send
  // more than it pays for.
  const cost = (req: Request) =>
    Math.max(1, Math.ceil(Number(req.get("content-length")) / MEGABYTE))
  const rate = { name: "megabytes", limit: 100, window: "1 hour" }
  // Our errors cost nothing.
  const refundWhen = (_req: Request, status: number) => status >= 500
  const limit = rateLimit({ ...surroundings, ...rate, cost, refundWhen })
  const requireLength: RequestHandler = (req, res, next) => {
    if (req.get("content-length") === undefined) res.sendStatus(411)
    else next()
  }
  return express().post("/files", requireLength, limit, save)
}
