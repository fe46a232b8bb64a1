import { once } from "node:events"
import { connect, createServer } from "node:http2"
import type { AddressInfo } from "node:net"
import { rateLimit as fastifyRateLimit } from "@sluice/fastify"
import { rateLimit as koaRateLimit } from "@sluice/koa"
import fastify from "fastify"
import Koa from "koa"
import { expect, it } from "vitest"

const BY_HOST = { limit: 1, window: "1 day", field: "header:host" } as const

async function startFastify() {
  const app = fastify({ http2: true })
  await app.register(fastifyRateLimit, BY_HOST)
  app.get("/", async () => "ok")
  await app.listen({ host: "127.0.0.1", port: 0 })
  return { server: app.server, stop: () => app.close() }
}

async function startKoa() {
  const app = new Koa()
  app.use(koaRateLimit(BY_HOST))
  app.use((ctx) => {
    ctx.body = "ok"
  })
  const server = createServer(app.callback()).listen(0, "127.0.0.1")
  await once(server, "listening")
  return { server, stop: () => new Promise((resolve) => server.close(resolve)) }
}

it.each([
  ["Fastify", startFastify],
  ["Koa", startKoa],
])("clients of different hosts are counted separately over HTTP/2, by %s", async (_framework, start) => {
  const { server, stop } = await start()
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
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
  await new Promise((resolve) => session.close(() => resolve(undefined)))
  await stop()
})
