import * as adapter from "@sluice/express"
import type { Express } from "express"
import { listen } from "../../contracts/adapter/listen.ts"
import { onStandingClock } from "../standing-clock.ts"
import { apps } from "./apps.ts"
import { limiting } from "./limiting.ts"
import type { Served } from "./prelude.ts"

const { rateLimit } = onStandingClock("@sluice/express", adapter) as unknown as typeof adapter

/** The values for blocks about Express, or without a framework. */
export const given = {
  ...apps.express,
  ...limiting,
  rateLimit: () => rateLimit,
  /** Returns the day of the month on which a customer's plan is renewed. */
  renewsOn:
    () =>
    (_id: string | undefined): number =>
      31,
} as const

export function serve(app: Express): Promise<Served> {
  app.use((_req, res) => void res.json({ ok: true }))
  return listen(app)
}
