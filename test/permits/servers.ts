import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createServer as createHttp2Server, type Http2Server } from "node:http2"
import type { AddressInfo } from "node:net"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { serve } from "@hono/node-server"
import type { Limiter } from "@sluice/core"
import { rateLimit as onExpress } from "@sluice/express"
import { rateLimit as onFastify } from "@sluice/fastify"
import { rateLimit as onHono } from "@sluice/fetch/hono"
import { rateLimit as onKoa } from "@sluice/koa"
import express from "express"
import express4 from "express4"
import fastify, { type FastifyInstance } from "fastify"
import { Hono } from "hono"
import Koa from "koa"
import Koa2 from "koa2"
import { onTestFinished } from "vitest"
import { rateLimit as onNode } from "../../examples/src/adapter/rate-limit.ts"
import { type Client, http1Client, http2Client } from "./clients.ts"
import type { Reply } from "./responses.ts"

/** Starts a server that limits all requests. The handler responds to "/", and the framework to other paths. */
type Start = (limiter: Limiter<never>, handle: (reply: Reply) => unknown) => Promise<Running>

interface Running {
  readonly url: string
  readonly client: Client
}

type Handle = Parameters<Start>[1]
type Listener = (request: IncomingMessage, response: ServerResponse) => void

export const SERVERS: Readonly<Record<string, Start>> = {
  Node: (limiter, handle) => overHttp1(createServer(nodeListener(limiter, handle))),
  "Node over HTTP/2": (limiter, handle) =>
    overHttp2(createHttp2Server(nodeListener(limiter, handle) as never)),
  "Express 5": (limiter, handle) => overHttp1(createServer(expressApp(express, limiter, handle))),
  "Express 4": (limiter, handle) =>
    overHttp1(createServer(expressApp(express4 as unknown as typeof express, limiter, handle))),
  "Koa 3": (limiter, handle) => overHttp1(createServer(koaListener(Koa, limiter, handle))),
  "Koa 2": (limiter, handle) =>
    overHttp1(createServer(koaListener(Koa2 as unknown as typeof Koa, limiter, handle))),
  "Koa over HTTP/2": (limiter, handle) =>
    overHttp2(createHttp2Server(koaListener(Koa, limiter, handle) as never)),
  Fastify: async (limiter, handle) => {
    const app = await fastifyApp(fastify({ forceCloseConnections: true }), limiter, handle)
    const url = await app.listen({ host: "127.0.0.1", port: 0 })
    return { url, client: http1Client(url) }
  },
  "Fastify over HTTP/2": async (limiter, handle) => {
    const app = await fastifyApp(fastify({ http2: true }) as unknown as FastifyInstance, limiter, handle)
    const url = await app.listen({ host: "127.0.0.1", port: 0 })
    return { url, client: http2Client(url) }
  },
  Hono: (limiter, handle) => {
    return new Promise((resolve) => {
      const server = serve(
        { fetch: honoApp(limiter, handle).fetch, hostname: "127.0.0.1", port: 0 },
        ({ port }) => {
          const url = `http://127.0.0.1:${port}`
          resolve({ url, client: http1Client(url) })
        },
      ) as Server
      closeLater(server)
    })
  },
}

function closeLater(server: Server | Http2Server): void {
  onTestFinished(() => {
    if ("closeAllConnections" in server) server.closeAllConnections()
    server.close()
  })
}

async function listen(server: Server | Http2Server): Promise<string> {
  closeLater(server)
  await once(server.listen(0, "127.0.0.1"), "listening")
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function overHttp1(server: Server): Promise<Running> {
  const url = await listen(server)
  return { url, client: http1Client(url) }
}

async function overHttp2(server: Http2Server): Promise<Running> {
  const url = await listen(server)
  return { url, client: http2Client(url) }
}

/** Returns the ways to respond by Node's response. */
function nodeReply(response: ServerResponse): Reply {
  return {
    send(status, body) {
      response.statusCode = status
      response.end(body)
    },
    stream: (body) => pipeline(body, response),
    takeOver: () => response,
  }
}

function nodeListener(limiter: Limiter<never>, handle: Handle): Listener {
  const limit = onNode({ limiter: limiter as Limiter<never> as never })
  return (request, response) => {
    const failed = () => {
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end()
    }
    limit(request, response, async () => {
      if (request.url !== "/") response.writeHead(404).end()
      else await Promise.resolve(nodeReply(response)).then(handle).catch(failed)
    })
  }
}

function expressApp(create: typeof express, limiter: Limiter<never>, handle: Handle): Listener {
  const app = create().set("env", "test")
  app.use(onExpress({ limiter }))
  app.all("/", (_request, response, next) => {
    const send: Reply["send"] = (status, body) => void response.status(status).send(body)
    Promise.resolve({ ...nodeReply(response), send })
      .then(handle)
      .catch(next)
  })
  return app as Listener
}

function koaListener(create: typeof Koa, limiter: Limiter<never>, handle: Handle): Listener {
  const app = new create().on("error", () => undefined)
  app.use(onKoa({ limiter })).use(async (ctx, next) => {
    if (ctx.path !== "/") return next()
    await handle({
      send(status, body) {
        ctx.status = status
        if (body !== undefined) ctx.body = body
      },
      stream(body) {
        ctx.body = body
      },
      takeOver() {
        ctx.respond = false
        return ctx.res
      },
    })
  })
  return app.callback()
}

export async function fastifyApp(
  app: FastifyInstance,
  limiter: Limiter<never>,
  handle: Handle,
): Promise<FastifyInstance> {
  onTestFinished(() => app.close())
  await app.register(onFastify, { limiter })
  app.route({
    method: ["GET", "HEAD"],
    url: "/",
    async handler(_request, reply) {
      await handle({
        send: (status, body) => reply.code(status).send(body),
        stream: (body) => reply.send(body),
        takeOver: () => reply.hijack().raw,
      })
      return reply
    },
  })
  return app
}

function honoApp(limiter: Limiter<never>, handle: Handle): Hono {
  const app = new Hono()
  app.onError((_error, c) => c.body(null, 500))
  app.use(onHono({ limiter }))
  app.get("/", (c) => {
    return handle({
      send: (status, body) => new Response(body ?? null, { status }),
      stream: (body) => c.body(Readable.toWeb(body) as ReadableStream),
    }) as Response
  })
  return app
}
