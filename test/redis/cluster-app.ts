// An app under node:cluster: Express in several processes that share one port. The primary sends the port to its
// parent.
import cluster from "node:cluster"
import type { App } from "./asking-instance.ts"

const app = JSON.parse(process.argv[2] ?? "") as App
const WORKERS = 3

if (cluster.isPrimary) {
  process.once("disconnect", () => process.exit())
  let listening = 0
  cluster.on("listening", (_worker, { port }) => {
    if (++listening === WORKERS) process.send?.({ port })
  })
  for (let i = 0; i < WORKERS; i++) cluster.fork()
} else {
  // Do not import the app in the primary, which serves no requests.
  const { redisStore } = await import("@sluice/redis")
  const { rateLimit } = await import("@sluice/express")
  const { default: express } = await import("express")
  const { openClient } = await import("./open-client.ts")
  const { client } = await openClient(app.client)
  express()
    .use(
      rateLimit({
        store: redisStore({ client, prefix: app.prefix }),
        service: "shop",
        limit: app.limit,
        window: app.windowMs,
        field: "service",
        storeTimeoutMs: 20_000,
      }),
    )
    .get("/", (_request, response) => void response.set("x-process", `${process.pid}`).send("hello"))
    // The primary picks one free port for all workers.
    .listen(0, "127.0.0.1")
}
