import { type Logger, memoryStore, type Store } from "@sluice/core"
import { rateLimit as expressRateLimit } from "@sluice/express"
import { rateLimit as fastifyRateLimit } from "@sluice/fastify"
import compression from "compression"
import express, { type RequestHandler } from "express"
import express4 from "express4"
import fastify from "fastify"
import { describe, expect, it, onTestFinished } from "vitest"
import { laterStore } from "../packages/core/src/stores/testing/later-store.ts"
import { listening } from "./servers/listening.ts"

/**
 * Starts an app that compresses responses, begins each response, and only then limits the request. Resolves to the
 * app's URL.
 */
type Start = (store: Store, logger: Logger) => Promise<string>

const rule = { limit: 1, window: "1 hour" } as const

/** Begins the response and calls `next`, like a handler that is mounted before the limiter by mistake. */
const begin: RequestHandler = (_req, res, next) => {
  res.setHeader("Content-Type", "text/plain")
  res.write("begun")
  next()
}

const onExpress =
  (create: typeof express): Start =>
  (store, logger) => {
    const app = create()
    app.use(compression({ threshold: 0 }), begin, expressRateLimit({ ...rule, store, logger }))
    app.use((_req, res) => void res.end(", admitted"))
    return listening(app)
  }

const onFastify: Start = async (store, logger) => {
  const app = fastify({ forceCloseConnections: true })
  onTestFinished(() => app.close())
  for (const middleware of [compression({ threshold: 0 }), begin]) {
    app.addHook("onRequest", (request, reply, done) =>
      middleware(request.raw as never, reply.raw as never, done),
    )
  }
  await app.register(fastifyRateLimit, { ...rule, store, logger })
  app.get("/", (_request, reply) => {
    reply.hijack()
    reply.raw.end(", admitted")
  })
  return app.listen({ port: 0, host: "127.0.0.1" })
}

describe.each([
  ["Express 5", onExpress(express)],
  ["Express 4", onExpress(express4)],
  ["Fastify", onFastify],
])("a request that is refused after its response has started, with compression on %s", (_name, start) => {
  it.each([
    ["immediately", memoryStore],
    ["later", laterStore],
  ])("gets the part that was already written, if the store responds %s", async (_when, makeStore) => {
    const warnings: unknown[] = []
    const log = ({ code }: { readonly code: string }): void => void warnings.push(code)
    const store: Store = makeStore()
    onTestFinished(() => store.close())
    const url = await start(store, { warn: log, error: log })
    const bodies = []
    for (let i = 0; i < 3; i++) {
      const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
      bodies.push(await response.text())
    }
    expect(bodies).toEqual(["begun, admitted", "begun", "begun"])
    expect(warnings).toEqual(["SLUICE_MOUNTED_TOO_LATE"])
  })
})
