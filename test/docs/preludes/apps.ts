import Router from "@koa/router"
import express, { type Express, type RequestHandler } from "express"
import fastify, { type FastifyInstance } from "fastify"
import { Redis } from "ioredis"
import Koa, { type Middleware } from "koa"
import { onTestFinished } from "vitest"
import { redisUrl } from "./redis.ts"

// What an app has without Sluice. No adapter is imported here: blocks that show other limiters know only this, as what
// adapters declare about a framework's types is for all code beside them.

const shared = {
  /** A client of a real Redis that is empty. */
  async client(): Promise<Redis> {
    const client = new Redis(await redisUrl())
    onTestFinished(() => client.disconnect())
    return client
  },
} as const

/** A view of any name: what an app's own engine would render. */
class Page {
  readonly path = "page"
  render(_options: object, done: (error: null, html: string) => void): void {
    done(null, "<p>Slow down</p>")
  }
}

/** By prelude. */
export const apps = {
  express: {
    ...shared,
    app: (): Express => express().set("view", Page),
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
  fastify: {
    ...shared,
    app: (): FastifyInstance => fastify(),
    handler: () => async (): Promise<{ readonly ok: true }> => ({ ok: true }),
  },
} as const
