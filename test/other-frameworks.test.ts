import type { RequestListener } from "node:http"
import { InvalidOptionError } from "@sluice/core"
import { rateLimit as onExpress } from "@sluice/express"
import { rateLimit as onFastify } from "@sluice/fastify"
import { rateLimit as onKoa } from "@sluice/koa"
import express, { type ErrorRequestHandler } from "express"
import express4 from "express4"
import fastify from "fastify"
import Koa from "koa"
import Koa2 from "koa2"
import { describe, expect, it } from "vitest"
import { listening } from "./servers/listening.ts"

const options = { limit: 5, window: "1 minute", refundWhen: () => false } as const

async function statusOf(listener: RequestListener): Promise<number> {
  return (await fetch(await listening(listener))).status
}

type Frame = (middleware: never) => Promise<{ readonly status: number; readonly error: unknown }>

const inExpress =
  (make: typeof express): Frame =>
  async (middleware) => {
    let error: unknown
    const keep: ErrorRequestHandler = (thrown, _req, res, _next) => {
      error = thrown
      res.status(500).end()
    }
    const app = make()
      .use(middleware)
      .use((_req, res) => void res.end("handled"))
    return { status: await statusOf(app.use(keep)), error }
  }

const inKoa =
  (App: typeof Koa): Frame =>
  async (middleware) => {
    let error: unknown
    const app = new App().use(middleware).use((ctx) => {
      ctx.body = "handled"
    })
    app.on("error", (thrown) => {
      error = thrown
    })
    return { status: await statusOf(app.callback()), error }
  }

const inFastify: Frame = async (middleware) => {
  let error: unknown
  const app = fastify()
  app.addHook("onRequest", middleware)
  app.setErrorHandler((thrown, _request, reply) => {
    error = thrown
    return reply.code(500).send()
  })
  app.get("/", async () => "handled")
  const { statusCode } = await app.inject("/")
  await app.close()
  return { status: statusCode, error }
}

describe("middleware that another framework calls", () => {
  it.each<[own: string, where: string, middleware: unknown, frame: Frame]>([
    ["@sluice/express", "Koa 3", onExpress(options), inKoa(Koa)],
    ["@sluice/express", "Koa 2", onExpress(options), inKoa(Koa2)],
    ["@sluice/express", "Fastify", onExpress(options), inFastify],
    ["@sluice/koa", "Express 5", onKoa(options), inExpress(express)],
    ["@sluice/koa", "Express 4", onKoa(options), inExpress(express4)],
    ["@sluice/koa", "Fastify", onKoa(options), inFastify],
    ["@sluice/fastify", "Express 5", onFastify, inExpress(express)],
    ["@sluice/fastify", "Express 4", onFastify, inExpress(express4)],
    ["@sluice/fastify", "Koa 3", onFastify, inKoa(Koa)],
    ["@sluice/fastify", "Koa 2", onFastify, inKoa(Koa2)],
  ])(
    "throws an error that names its own package and the right one: %s in %s",
    async (own, where, middleware, frame) => {
      const { status, error } = await frame(middleware as never)
      expect(status).toBe(500)
      expect(error).toBeInstanceOf(InvalidOptionError)
      const { problems } = error as InvalidOptionError
      const [framework] = where.split(" ")
      expect(problems).toHaveLength(1)
      expect(problems[0]?.message).toContain(own)
      expect(problems[0]?.accepted).toContain(`@sluice/${framework?.toLowerCase()} for ${framework}`)
    },
  )
})
