import "reflect-metadata"
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http"
import type { AddressInfo } from "node:net"
import { serve } from "@hono/node-server"
import { type DynamicModule, Module } from "@nestjs/common"
import { type AbstractHttpAdapter, NestFactory } from "@nestjs/core"
import { ExpressAdapter } from "@nestjs/platform-express"
import { FastifyAdapter } from "@nestjs/platform-fastify"
import type { Dashboard } from "@sluice/dashboard"
import express from "express"
import express4 from "express4"
import fastify from "fastify"
import { Hono } from "hono"
import Koa, { type Context } from "koa"

/** A server with the dashboard at "/limits" and "other" everywhere else. */
export interface Mounted {
  readonly port: number
  close(): Promise<void>
}

/** How a framework mounts the dashboard. */
export interface Framework {
  readonly name: string
  /** The option `path` that the framework needs. */
  readonly path?: string
  mount(page: Dashboard): Promise<Mounted>
}

const listening = async (server: Server): Promise<Mounted> => {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

/** Mounts the dashboard in an app of Express. `before` adds middleware. */
export function inExpress(create: typeof express, page: Dashboard, before?: (app: express.Express) => void) {
  const app = create()
  before?.(app)
  app.use("/limits", page)
  app.use((_request, response) => void response.send("other"))
  return listening(createServer(app))
}

/** Mounts the dashboard in an app of Koa. */
export function inKoa(page: Dashboard, ...before: Koa.Middleware[]) {
  const app = new Koa()
  for (const each of before) app.use(each)
  app.use(page.koa)
  app.use((ctx: Context) => {
    ctx.body = "other"
  })
  return listening(createServer(app.callback()))
}

/** All frameworks with the ways to mount the dashboard that its guide shows. */
export const FRAMEWORKS: readonly Framework[] = [
  {
    name: "Node",
    path: "/limits",
    mount: (page) =>
      listening(createServer((call, response) => page(call, response, () => response.end("other")))),
  },
  { name: "Express 5", mount: (page) => inExpress(express, page) },
  { name: "Express 4", mount: (page) => inExpress(express4 as unknown as typeof express, page) },
  { name: "Koa", path: "/limits", mount: (page) => inKoa(page) },
  {
    name: "Fastify",
    async mount(page) {
      const app = fastify()
      app.register(page.fastify, { prefix: "/limits" })
      app.all("/*", async () => "other")
      await app.listen({ port: 0, host: "127.0.0.1" })
      return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
    },
  },
  { name: "Nest on Express", mount: (page) => inNest(page, new ExpressAdapter()) },
  { name: "Nest on Fastify", mount: (page) => inNest(page, new FastifyAdapter()) },
]

/** Mounts the dashboard in an app of Nest. */
export async function inNest(
  page: Dashboard,
  adapter: AbstractHttpAdapter,
  imports: readonly DynamicModule[] = [],
): Promise<Mounted> {
  class AppModule {}
  Module({ imports: [...imports] })(AppModule)
  const app = await NestFactory.create(AppModule, adapter, { logger: false, forceCloseConnections: true })
  app.use("/limits", page)
  app.use((_request: unknown, response: ServerResponse) => void response.end("other"))
  await app.listen(0, "127.0.0.1")
  return { port: (app.getHttpServer().address() as AddressInfo).port, close: () => app.close() }
}

/** A fetch server, which needs `authorize`. */
export const FETCH: Framework = {
  name: "Hono",
  path: "/limits",
  async mount(page) {
    const app = new Hono()
    app.all("/limits/*", (context) => page.fetch(context.req.raw))
    app.all("/*", (context) => context.text("other"))
    const server = await new Promise<Server>((done) => {
      const started = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, () =>
        done(started as Server),
      )
    })
    return {
      port: (server.address() as AddressInfo).port,
      close: () =>
        new Promise((done) => {
          server.close(() => done())
          server.closeAllConnections()
        }),
    }
  },
}

/** A response with its whole body. */
export interface Reply {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** What a call sends in addition to its path. */
export interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends a request, without following redirects, and resolves when the response has begun. */
function begin(port: number, path: string, { method = "GET", headers = {}, body }: Call = {}) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const target = { port, host: "127.0.0.1", path, method, agent: false }
    // As browsers do.
    const call = request({ ...target, headers: { connection: "keep-alive", ...headers } }, resolve)
    call.on("error", reject)
    call.end(body)
  })
}

/** Sends a request and reads the response. */
export async function send(port: number, path: string, call: Call = {}): Promise<Reply> {
  const response = await begin(port, path, call)
  const parts: Buffer[] = []
  for await (const part of response) parts.push(part)
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(parts).toString() }
}

/** Opens the events, and returns a function that waits for the next event with data. */
export async function openEvents(port: number, headers: Call["headers"] = {}) {
  const response = await begin(port, "/limits/events", { headers })
  response.setEncoding("utf8")
  const chunks = response[Symbol.asyncIterator]()
  let text = ""
  return {
    response,
    /** Resolves with the next event, or with undefined at the end. */
    async next(): Promise<string | undefined> {
      while (!text.includes("\n\n")) {
        const { done, value } = await chunks.next()
        if (done === true) return undefined
        text += value
      }
      const end = text.indexOf("\n\n") + 2
      const event = text.slice(0, end)
      text = text.slice(end)
      return event
    },
    leave: () => response.destroy(),
  }
}
