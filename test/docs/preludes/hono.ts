import { getRequestListener } from "@hono/node-server"
import type { Hono } from "hono"
import { listen } from "../../contracts/adapter/listen.ts"
import { apps } from "./apps.ts"
import type { Served } from "./prelude.ts"

/** The values for blocks about Hono. */
export const given = { ...apps.hono } as const

export function serve(app: Hono): Promise<Served> {
  app.all("*", (c) => c.json({ ok: true }))
  return listen(getRequestListener(app.fetch))
}
