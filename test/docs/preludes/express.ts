import * as adapter from "@sluice/express"
import express, { type Express, type RequestHandler } from "express"
import { listen } from "../../contracts/adapter/listen.ts"
import { onStandingClock } from "../standing-clock.ts"
import { limiting } from "./limiting.ts"
import type { Served } from "./prelude.ts"

const { rateLimit } = onStandingClock("@sluice/express", adapter) as unknown as typeof adapter

/** A view of any name: what an app's own engine would render. */
class Page {
  readonly path = "page"
  render(_options: object, done: (error: null, html: string) => void): void {
    done(null, "<p>Slow down</p>")
  }
}

/** What blocks take for granted that are about Express, or about no framework. */
export const given = {
  ...limiting,
  app: (): Express => express().set("view", Page),
  handler: (): RequestHandler => (_req, res) => void res.json({ ok: true }),
  rateLimit: () => rateLimit,
} as const

export function serve(app: Express): Promise<Served> {
  app.use((_req, res) => void res.json({ ok: true }))
  return listen(app)
}
