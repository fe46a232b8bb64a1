import * as adapter from "@sluice/koa"
import type Koa from "koa"
import { listen } from "../../contracts/adapter/listen.ts"
import { onStandingClock } from "../standing-clock.ts"
import { apps } from "./apps.ts"
import { limiting } from "./limiting.ts"
import type { Served } from "./prelude.ts"

const { rateLimit } = onStandingClock("@sluice/koa", adapter) as unknown as typeof adapter

/** The values for blocks about Koa. */
export const given = {
  ...apps.koa,
  ...limiting,
  rateLimit: () => rateLimit,
} as const

export function serve(app: Koa): Promise<Served> {
  app.use((ctx) => {
    ctx.body = { ok: true }
  })
  return listen(app.callback())
}
