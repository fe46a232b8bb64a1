import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import { Session } from "node:inspector/promises"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import { createLimiter } from "@sluice/core"
import { parseRules } from "@sluice/core/rules"
import * as express from "@sluice/express"
import * as fastifyAdapter from "@sluice/fastify"
import * as koa from "@sluice/koa"
import { readRuleFile } from "@sluice/rules"
import expressApp from "express"
import fastify from "fastify"
import KoaApp from "koa"
import type { Calls, Way } from "./ways.ts"

// Sends requests in the given way, and prints the functions of Sluice that the last request called. The way "rule
// text" parses a rule instead.

/** Number of requests before the counted one, because the first request initializes caches and lazy modules. */
const BEFORE = 5
const RULE = { limit: 100, window: "1 minute" } as const

/** Sends one request. */
type Send = () => Promise<unknown>

const WAYS: Readonly<Record<Way, () => Promise<Send>>> = {
  async decide() {
    const limiter = createLimiter(RULE)
    return () => limiter.decide({ remoteAddress: "192.0.2.1" })
  },
  async express() {
    return over(expressApp().use(express.rateLimit(RULE), (_req, res) => void res.end("ok")))
  },
  async fastify() {
    const app = fastify()
    await app.register(fastifyAdapter.rateLimit, RULE)
    app.get("/", async () => "ok")
    await app.ready()
    return over((req, res) => app.routing(req, res))
  },
  async koa() {
    const app = new KoaApp().use(koa.rateLimit(RULE)).use((context) => {
      context.body = "ok"
    })
    return over(app.callback())
  },
  async "rule text"() {
    const text = "rules:\n  - { field: ip, rate: { requests_per_unit: 100, unit: minute } }\n"
    return async () => {
      const { documents } = await readRuleFile(text, "yaml")
      return parseRules(documents[0]?.rules, "rules")
    }
  },
}

async function over(listener: RequestListener): Promise<Send> {
  const server = createServer(listener).listen(0)
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return async () => (await fetch(url)).text()
}

const [way = "decide", root = ""] = process.argv.slice(2)
const send = await WAYS[way as Way]()
for (let i = 0; i < BEFORE; i++) await send()

const session = new Session()
session.connect()
await session.post("Profiler.enable")
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })
// Reset the counts.
await session.post("Profiler.takePreciseCoverage")
await send()
const { result } = await session.post("Profiler.takePreciseCoverage")

const calls: Record<string, Record<string, number>> = {}
for (const { url, functions } of result) {
  if (!url.startsWith("file:")) continue
  const path = fileURLToPath(url)
  if (!path.startsWith(`${root}/packages/`)) continue
  for (const { functionName, ranges } of functions) {
    const count = ranges[0]?.count ?? 0
    // `__name` is a helper of the transpiler.
    if (count === 0 || functionName === "__name") continue
    const file = path.slice(root.length + 1)
    calls[file] ??= {}
    calls[file][functionName] = (calls[file][functionName] ?? 0) + count
  }
}
console.log(JSON.stringify(calls satisfies Calls))
process.exit()
