import { createApp as createExpressApp } from "../express.ts"
import { createApp as createFastifyApp } from "../fastify.ts"
import { createApp as createKoaApp } from "../koa.ts"
import { type Served, serve } from "./serve.ts"

/** A running example app. */
export interface ExampleServer extends Served {
  readonly framework: "Express" | "Fastify" | "Koa"
}

/** Starts the three example apps. Each has a free port, and its own counters in memory. */
export async function startServers(): Promise<readonly ExampleServer[]> {
  // The demo itself plays a proxy on this machine for its clients.
  const options = { trustedProxies: ["loopback"] }
  return [
    { framework: "Express", ...(await serve(createExpressApp(options))) },
    { framework: "Fastify", ...(await serve(await createFastifyApp(options))) },
    { framework: "Koa", ...(await serve(createKoaApp(options).callback())) },
  ]
}
