import { createApp as createExpressApp } from "../express.ts"
import { createApp as createFastifyApp } from "../fastify.ts"
import { createApp as createKoaApp } from "../koa.ts"
import { type Served, serve } from "./serve.ts"

/** An example app that listens. */
export interface ExampleServer extends Served {
  readonly framework: "Express" | "Fastify" | "Koa"
}

/** The three example apps, each on a free port, with counters of its own in memory. */
export async function startServers(): Promise<readonly ExampleServer[]> {
  // The demo's clients come through a proxy on this machine, which is the demo itself.
  const options = { trustedProxies: ["loopback"] }
  return [
    { framework: "Express", ...(await serve(createExpressApp(options))) },
    { framework: "Fastify", ...(await serve(await createFastifyApp(options))) },
    { framework: "Koa", ...(await serve(createKoaApp(options).callback())) },
  ]
}
