import { once } from "node:events"
import { type ClientHttp2Session, connect, createServer, type Http2Server } from "node:http2"
import type { AddressInfo } from "node:net"
import { rateLimit as fastifyRateLimit, type RateLimitOptions } from "@sluice/fastify"
import { rateLimit as koaRateLimit } from "@sluice/koa"
import fastify from "fastify"
import Koa from "koa"
import { expect, it, onTestFinished } from "vitest"

const ONE = { limit: 1, window: "1 day" } as const satisfies RateLimitOptions

async function startFastify(): Promise<Http2Server> {
  const app = fastify({ http2: true })
  await app.register(fastifyRateLimit, ONE)
  app.options("/", async () => "ok")
  await app.listen({ host: "127.0.0.1", port: 0 })
  onTestFinished(() => app.close())
  return app.server as unknown as Http2Server
}

async function startKoa(): Promise<Http2Server> {
  const app = new Koa()
  app.use(koaRateLimit(ONE)).use((ctx) => {
    ctx.body = "ok"
  })
  const server = createServer(app.callback()).listen(0, "127.0.0.1")
  onTestFinished(() => void server.close())
  await once(server, "listening")
  return server
}

/** Sends a preflight with or without a body, whose length no header states. */
async function preflight(session: ClientHttp2Session, body?: string): Promise<unknown> {
  const headers = { origin: "https://a.example", "access-control-request-method": "PUT" }
  const stream = session.request(
    { ":method": "OPTIONS", ":path": "/", ...headers },
    { endStream: body === undefined },
  )
  if (body !== undefined) stream.end(body)
  const [{ ":status": status }] = await once(stream.resume(), "response")
  return status
}

it.each([
  ["Fastify", startFastify],
  ["Koa", startKoa],
])("a preflight over HTTP/2 is not counted on %s, but one with a body is", async (_framework, start) => {
  const server = await start()
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => session.destroy())
  const statuses: unknown[] = []
  for (const body of [undefined, undefined, "a", "b", undefined])
    statuses.push(await preflight(session, body))
  expect(statuses).toEqual([200, 200, 200, 429, 200])
})
