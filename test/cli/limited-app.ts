// An app with Express, which counts in Redis and shares what it records. Its parent process gets the port of the app.
import type { AddressInfo } from "node:net"
import type { LimiterOptions, Rule } from "@sluice/core"
import { recordActivity } from "@sluice/dashboard"
import { rateLimit } from "@sluice/express"
import { redisActivity, redisStore } from "@sluice/redis"
import express, { type Request } from "express"
import { Redis } from "ioredis"

/** The settings of an app. */
export interface AppSettings extends Pick<LimiterOptions<Request>, "hashKeys" | "hashSecret"> {
  readonly port: number
  readonly service: string
  readonly rules: readonly Rule[]
  readonly prefix?: string
  /** The first day of the periods of the rule "monthly", as a function returns it. */
  readonly renewsOn?: number
}

const { port, prefix, renewsOn, rules, ...options } = JSON.parse(process.argv[2] ?? "") as AppSettings
const isAnchored = ({ name }: Rule): boolean => name === "monthly" && renewsOn !== undefined
const client = new Redis(port)
client.on("error", () => undefined)
const limits = rateLimit({
  ...options,
  rules: rules.map((rule) => (isAnchored(rule) ? ({ ...rule, anchor: () => renewsOn } as Rule) : rule)),
  // A field that no facts of a request contain.
  fields: { user: (req) => req.get("x-user") },
  store: redisStore({ client, prefix }),
  // A slow test machine must not count locally.
  storeTimeoutMs: 10_000,
})
recordActivity(limits.limiter, { shared: redisActivity({ client, prefix }) })
const app = express()
app.use(limits)
app.use((_req, res) => void res.send("ok"))
const server = app.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port))
process.once("disconnect", () => process.exit())
