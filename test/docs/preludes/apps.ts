import { createServer, type IncomingMessage, type Server } from "node:http"
import type { Duplex } from "node:stream"
import Router from "@koa/router"
import express, { type Express, type RequestHandler } from "express"
import fastify, { type FastifyInstance } from "fastify"
import { type Handler, Hono } from "hono"
import { Redis } from "ioredis"
import Koa, { type Middleware } from "koa"
import { onTestFinished } from "vitest"
import { redisUrl } from "./redis.ts"

// The values that an app provides without Sluice. Do not import an adapter here. Adapters declare framework types for
// all code in the same program, and blocks with other limiters must not see those declarations.

const shared = {
  /** Returns a client of a real, empty Redis. */
  async client(): Promise<Redis> {
    const client = new Redis(await redisUrl())
    onTestFinished(() => client.disconnect())
    return client
  },
} as const

/** A view that renders any name, like an app's own engine. */
class Page {
  readonly path = "page"
  render(_options: object, done: (error: null, html: string) => void): void {
    done(null, "<p>Slow down</p>")
  }
}

interface WebSockets {
  handleUpgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    done: (socket: { send(text: string): void }) => void,
  ): void
}

/** The apps, by prelude. */
export const apps = {
  express: {
    ...shared,
    app: (): Express => express().set("view", Page),
    server: (): Server => createServer(),
    /** The part of ws that documents use, because only the examples depend on ws. */
    sockets: (): WebSockets => ({ handleUpgrade: (_req, socket) => socket.destroy() }),
    handler: (): RequestHandler => (_req, res) => void res.json({ ok: true }),
  },
  koa: {
    ...shared,
    app: (): Koa => new Koa(),
    router: (): Router => new Router(),
    handler: (): Middleware => (ctx) => {
      ctx.body = { ok: true }
    },
  },
  hono: {
    ...shared,
    app: (): Hono => new Hono(),
    handler: (): Handler => (c) => c.json({ ok: true }),
  },
  fastify: {
    ...shared,
    app: (): FastifyInstance => fastify(),
    handler: () => async (): Promise<{ readonly ok: true }> => ({ ok: true }),
  },
} as const
