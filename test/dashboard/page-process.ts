// A process with a limiter and a page, which shares its counts and its records. Its parent process sends it requests.
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { createLimiter } from "@sluice/core"
import { dashboard } from "@sluice/dashboard"
import { redisActivity, redisStore } from "@sluice/redis"
import { Redis } from "ioredis"

/** How to start the process. */
export interface PageProcess {
  /** The port of Redis. */
  readonly port: number
  readonly hashSecret: string
  readonly token: string
}

/** What the process reports: its port, the refusal of a request, or the line of a change. */
export type Reported =
  | { readonly port: number }
  | { readonly refusal: string | undefined }
  | { readonly line: string; readonly fields: object }

const report = (reported: Reported): void => void process.send?.(reported)

const { port, hashSecret, token } = JSON.parse(process.argv[2] ?? "") as PageProcess
const client = new Redis(port, { retryStrategy: () => 20 })
client.on("error", () => undefined)
const logger = {
  warn() {},
  error() {},
  info: (fields: { readonly err?: Error }, line: string) =>
    report({ line, fields: { ...fields, ...(fields.err !== undefined && { err: fields.err.name }) } }),
}
const limiter = createLimiter({
  ...{ service: "shop", name: "calls", limit: 1, window: "1 hour", logger },
  store: redisStore({ client }),
  // A slow test machine must not count locally.
  storeTimeoutMs: 2_000,
})
const page = dashboard(limiter, { hashSecret, token, logger, shared: redisActivity({ client }) })
const server = createServer(page).listen(0, "127.0.0.1", () =>
  report({ port: (server.address() as AddressInfo).port }),
)
process.on("message", async (remoteAddress: string) => {
  const { refusal } = await limiter.decide({ remoteAddress })
  report({ refusal: refusal ?? "" })
})
process.once("disconnect", () => process.exit())
