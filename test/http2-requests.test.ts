import { once } from "node:events"
import { type ClientHttp2Session, connect, createServer, type Http2Server } from "node:http2"
import type { AddressInfo } from "node:net"
import { rateLimit as fastifyRateLimit } from "@sluice/fastify"
import { rateLimit as koaRateLimit } from "@sluice/koa"
import fastify from "fastify"
import Koa from "koa"
import { describe, expect, it, onTestFinished } from "vitest"

interface Rule {
  readonly limit: number
  readonly window: string
  readonly field?: string
}

async function startFastify(rule: Rule): Promise<Http2Server> {
  const app = fastify({ http2: true })
  await app.register(fastifyRateLimit, rule)
  app.route({ method: ["GET", "OPTIONS"], url: "/", handler: async () => "ok" })
  await app.listen({ host: "127.0.0.1", port: 0 })
  onTestFinished(() => app.close())
  return app.server as unknown as Http2Server
}

async function startKoa(rule: Rule): Promise<Http2Server> {
  const app = new Koa()
  app.use(koaRateLimit(rule)).use((ctx) => {
    ctx.body = "ok"
  })
  const server = createServer(app.callback()).listen(0, "127.0.0.1")
  onTestFinished(() => void server.close())
  await once(server, "listening")
  return server
}

describe.each([
  ["Fastify", startFastify],
  ["Koa", startKoa],
])("over HTTP/2, on %s", (_framework, start) => {
  async function sessionWith(rule: Rule): Promise<ClientHttp2Session> {
    const { port } = (await start(rule)).address() as AddressInfo
    const session = connect(`http://127.0.0.1:${port}`)
    onTestFinished(() => session.destroy())
    return session
  }

  it("requests to different hosts are counted separately", async () => {
    const session = await sessionWith({ limit: 1, window: "1 day", field: "header:host" })
    const statusOf = async (headers: object): Promise<unknown> => {
      const stream = session.request({ ":path": "/", ...headers }).resume()
      const [{ ":status": status }] = await once(stream, "response")
      return status
    }
    expect(await statusOf({ ":authority": "a.example" })).toBe(200)
    expect(await statusOf({ ":authority": "b.example" })).toBe(200)
    expect(await statusOf({ ":authority": "a.example" })).toBe(429)
    // A Host header in addition to the authority does not make it another client.
    expect(await statusOf({ ":authority": "a.example", host: "c.example" })).toBe(429)
  })

  it("a preflight is counted only if it has a body, even if no header states the body's length", async () => {
    const session = await sessionWith({ limit: 1, window: "1 day" })
    const preflight = async (body?: string): Promise<unknown> => {
      const headers = { origin: "https://a.example", "access-control-request-method": "PUT" }
      const stream = session.request(
        { ":method": "OPTIONS", ":path": "/", ...headers },
        { endStream: body === undefined },
      )
      if (body !== undefined) stream.end(body)
      const [{ ":status": status }] = await once(stream.resume(), "response")
      return status
    }
    const statuses: unknown[] = []
    for (const body of [undefined, undefined, "a", "b", undefined]) statuses.push(await preflight(body))
    expect(statuses).toEqual([200, 200, 200, 429, 200])
  })
})
