import { createApp as createExpressApp } from "../express.ts"
import { createApp as createFastifyApp } from "../fastify.ts"
import { createApp as createKoaApp } from "../koa.ts"
import type { WriteLine } from "../log-request.ts"
import { type Served, serve } from "./serve.ts"

/** A running example app. */
export interface ExampleServer extends Served {
  readonly framework: "Express" | "Fastify" | "Koa"
}

/**
 * Starts the three example apps. Each app listens on a free port and counts in its own memory store. `logOf` returns
 * where an app writes a line for each request.
 */
export async function startServers(
  logOf: (framework: ExampleServer["framework"]) => WriteLine | undefined = () => undefined,
): Promise<readonly ExampleServer[]> {
  // The demo itself acts as a proxy on this machine for its clients.
  const options = { trustedProxies: ["loopback"] }
  return [
    { framework: "Express", ...(await serve(createExpressApp(options, logOf("Express")))) },
    { framework: "Fastify", ...(await serve(await createFastifyApp(options, logOf("Fastify")))) },
    { framework: "Koa", ...(await serve(createKoaApp(options, logOf("Koa")).callback())) },
  ]
}
