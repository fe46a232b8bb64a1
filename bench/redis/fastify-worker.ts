import type { AddressInfo } from "node:net"
import peer from "@fastify/rate-limit"
import { rateLimit } from "@sluice/fastify"
import { redisStore } from "@sluice/redis"
import Fastify, { type FastifyRequest } from "fastify"
import { answerTasks } from "../contender-process.ts"
import { BODY, type Protection, WINDOW_MS } from "../http/setup.ts"
import { connect } from "./connect.ts"

/** A task that starts the server, or that returns the CPU time of the process in microseconds. */
export type HttpTask = { readonly start: Protection; readonly redisPort: number } | { readonly start?: never }

/** A limit that is never reached, although it is as small as a realistic limit. */
const LIMIT = 1_000_000

answerTasks<HttpTask>(async (task) => {
  if (task.start !== undefined) return start(task.start, task.redisPort)
  const { user, system } = process.cpuUsage()
  return user + system
})

async function start(protection: Protection, redisPort: number): Promise<number> {
  const app = Fastify()
  if (protection === "sluice") {
    const store = redisStore({ client: await connect(redisPort) })
    const fields = { client: (request: FastifyRequest) => clientOf(request) }
    // As in bench:redis. Use a long timeout, because a short one would cause decisions without Redis, which are
    // faster.
    const storeTimeoutMs = 2_000
    await app.register(rateLimit, {
      limit: LIMIT,
      window: WINDOW_MS,
      field: "client",
      fields,
      store,
      storeTimeoutMs,
    })
  }
  if (protection === "peer") {
    const redis = await connect(redisPort)
    await app.register(peer, { max: LIMIT, timeWindow: WINDOW_MS, keyGenerator: clientOf, redis })
  }
  app.get("/", async () => BODY)
  await app.listen({ port: 0, host: "127.0.0.1" })
  return (app.server.address() as AddressInfo).port
}

function clientOf(request: FastifyRequest): string {
  return String(request.headers["x-client"] ?? request.ip)
}
