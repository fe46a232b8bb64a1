import { rateLimit as onExpress } from "@sluice/express"
import { rateLimit as onFastify } from "@sluice/fastify"
import { rateLimit as onKoa } from "@sluice/koa"
import express from "express"
import express4 from "express4"
import fastify from "fastify"
import Koa from "koa"
import { describe, expect, it, onTestFinished } from "vitest"
import { listening } from "./servers/listening.ts"

interface Options {
  readonly limit: number
  readonly window: string
  readonly trustedProxies?: number
  readonly logger: { warn(fields: object, message: string): void; error(): void }
}
/** Starts an app whose framework may trust proxies, and returns the app's URL. */
type Start = (options: Options, trusts: boolean) => Promise<string>

const startExpress =
  (create: typeof express): Start =>
  (options, trusts) => {
    const app = create()
    if (trusts) app.set("trust proxy", 1)
    app.use(onExpress(options), (_req, res) => void res.send("ok"))
    return listening(app)
  }

const startKoa: Start = (options, trusts) => {
  const app = new Koa({ proxy: trusts })
  app.use(onKoa(options)).use((ctx) => {
    ctx.body = "ok"
  })
  return listening(app.callback())
}

const startFastify: Start = async (options, trusts) => {
  const app = fastify({ trustProxy: trusts })
  onTestFinished(() => app.close())
  await app.register(onFastify, options)
  app.get("/", async () => "ok")
  return app.listen({ port: 0 })
}

describe.each<[string, string, Start]>([
  ["Express 5", 'Express\' setting "trust proxy"', startExpress(express)],
  ["Express 4", 'Express\' setting "trust proxy"', startExpress(express4 as typeof express)],
  ["Koa", 'Koa\'s setting "proxy"', startKoa],
  ["Fastify", 'Fastify\'s setting "trustProxy"', startFastify],
])("the warning about an ignored header on %s", (_name, setting, start) => {
  async function warningsOf(trusts: boolean, trustedProxies?: number): Promise<string[]> {
    const warnings: string[] = []
    const logger = { warn: (_fields: object, message: string) => void warnings.push(message), error() {} }
    const options = {
      limit: 100,
      window: "1 minute",
      logger,
      ...(trustedProxies !== undefined && { trustedProxies }),
    }
    const url = await start(options, trusts)
    for (let times = 0; times < 2; times++) {
      await fetch(url, { headers: { "x-forwarded-for": "192.0.2.7" } })
    }
    return warnings
  }

  it("names the framework's own proxy setting if the app has turned it on", async () => {
    const [warning, ...others] = await warningsOf(true)
    expect(warning).toContain(`${setting} has no effect on the limiter. Set trustedProxies to `)
    expect(others).toEqual([])
  })

  it("does not name the framework's proxy setting if the app has not turned it on", async () => {
    const [warning, ...others] = await warningsOf(false)
    expect(warning).toContain("All clients behind a proxy count as one. Set trustedProxies to ")
    expect(others).toEqual([])
  })
})
