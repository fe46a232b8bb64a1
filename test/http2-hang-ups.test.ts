import { connect, constants, createServer, type Http2Server } from "node:http2"
import type { AddressInfo } from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import { createLimiter } from "@sluice/core"
import { createGuard, type GuardOptions } from "@sluice/core/adapters"
import { manualClock } from "@sluice/core/testing"
import { rateLimit as fastifyRateLimit } from "@sluice/fastify"
import { rateLimit as koaRateLimit } from "@sluice/koa"
import fastify from "fastify"
import Koa from "koa"
import { afterEach, describe, expect, it } from "vitest"

/**
 * The bucket releases one request every 100 ms, and five requests fit into it. All requests share the bucket, because
 * a closed stream has no address.
 */
const LEAKY = {
  limit: 10,
  window: "1 second",
  algorithm: "leaky-bucket",
  burst: 5,
  field: "service",
} as const

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** The parts of an app: its limiter options, a step that every request awaits before the limiter, and its handler. */
interface Plan {
  readonly options: GuardOptions<object>
  before(name: string): Promise<void>
  handle(name: string): Promise<void> | undefined
}

/** Starts an app on a free port. */
type Start = (plan: Plan) => Promise<Http2Server>

function listening(server: Http2Server): Promise<Http2Server> {
  closing.push(() => new Promise((resolve) => server.close(() => resolve())))
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)))
}

const STARTS: readonly (readonly [string, Start])[] = [
  [
    "a server without a framework",
    ({ options, before, handle }) => {
      const guard = createGuard<object>(options)
      closing.push(() => guard.close())
      return listening(
        createServer((req, res) => {
          const name = String(req.headers["x-name"])
          void before(name)
            .then(() => guard.check({ method: req.method, headers: req.headers }, req, res))
            .then(async (outcome) => {
              if (outcome === undefined) return
              await handle(name)
              res.end("ok")
            })
        }),
      )
    },
  ],
  [
    "Koa",
    ({ options, before, handle }) => {
      const app = new Koa()
      app.use((ctx, next) => before(ctx.get("x-name")).then(next))
      app.use(koaRateLimit(options))
      app.use(async (ctx) => {
        await handle(ctx.get("x-name"))
        ctx.body = "ok"
      })
      return listening(createServer(app.callback()))
    },
  ],
  [
    "Fastify",
    async ({ options, before, handle }) => {
      const app = fastify({ http2: true })
      app.addHook("onRequest", ({ headers }) => before(String(headers["x-name"])))
      await app.register(fastifyRateLimit, options)
      app.get("/", async ({ headers }) => {
        await handle(String(headers["x-name"]))
        return "ok"
      })
      await app.listen({ port: 0, host: "127.0.0.1" })
      closing.push(() => app.close())
      return app.server
    },
  ],
]

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await nextTurn()
}

/** Waits much longer than a request needs to reach its handler. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await nextTurn()
}

/** Creates a client with a real connection, and counts its streams that have closed on the server. */
function clientOf(server: Http2Server) {
  const streams = { closed: 0 }
  server.on("stream", (stream) => stream.once("close", () => void streams.closed++))
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  closing.push(async () => client.destroy())
  const ask = (name: string, method = "GET") => {
    const stream = client.request({ ":path": "/", ":method": method, "x-name": name })
    const status = new Promise<number | undefined>((resolve) => {
      stream.once("response", (headers) => resolve(headers[":status"]))
      stream.once("close", () => resolve(undefined))
    })
    stream.on("error", () => undefined).resume()
    return { status, cancel: () => stream.close(constants.NGHTTP2_CANCEL) }
  }
  return { streams, ask }
}

/** Starts an app with a leaky bucket. Requests await `gate` before they reach the limiter. */
async function serve(start: Start) {
  const clock = manualClock()
  const startMs = clock.now()
  const seen = { arrived: 0, decided: 0 }
  const entries: string[] = []
  const gate = { opened: Promise.resolve() }
  const skip = () => {
    seen.decided++
    return false
  }
  const server = await start({
    options: { ...LEAKY, clock, skip },
    before() {
      seen.arrived++
      return gate.opened
    },
    handle(name) {
      entries.push(`${clock.now() - startMs} ${name}`)
      return undefined
    },
  })
  return { clock, seen, entries, gate, ...clientOf(server) }
}

describe.each(STARTS)("over HTTP/2, on %s", (_name, start) => {
  it.each(["GET", "HEAD"])("a request that is cancelled in the queue frees its place: %s", async (method) => {
    const { clock, seen, streams, entries, ask } = await serve(start)
    expect(await ask("a").status).toBe(200)
    await until(() => streams.closed === 1)
    const held = ask("b", method)
    await until(() => seen.decided === 2)
    await turns()
    held.cancel()
    await until(() => streams.closed === 2)
    await turns()
    const next = ask("c")
    await until(() => seen.decided === 3)
    for (let i = 0; i < 4; i++) {
      await turns()
      clock.advance(50)
    }
    expect(await next.status).toBe(200)
    expect(entries).toEqual(["0 a", "100 c"])
  })

  it("a request that is cancelled before it reaches the limiter does not enter the queue", async () => {
    const { clock, seen, streams, entries, gate, ask } = await serve(start)
    expect(await ask("a").status).toBe(200)
    await until(() => streams.closed === 1)
    let open = () => {}
    gate.opened = new Promise((resolve) => {
      open = resolve
    })
    const gone = ask("b")
    await until(() => seen.arrived === 2)
    gone.cancel()
    await until(() => streams.closed === 2)
    open()
    await until(() => seen.decided === 2)
    await turns()
    const next = ask("c")
    await until(() => seen.decided === 3)
    for (let i = 0; i < 4; i++) {
      await turns()
      clock.advance(50)
    }
    expect(await next.status).toBe(200)
    expect(entries).toEqual(["0 a", "100 c"])
  })
})

describe.each(STARTS.slice(1))("refundWhen over HTTP/2, on %s", (_name, start) => {
  it("is not called for a request that is cancelled before its response, so its units are not refunded", async () => {
    const statuses: number[] = []
    const limiter = createLimiter<object>({
      limit: 5,
      window: "1 minute",
      field: "service",
      clock: manualClock(),
      refundWhen: (_request, status) => statuses.push(status) > 0,
    })
    closing.push(() => limiter.close())
    const handled: string[] = []
    let answer = () => {}
    const pending = new Promise<void>((resolve) => {
      answer = resolve
    })
    const server = await start({
      options: { limiter },
      before: async () => undefined,
      handle(name) {
        handled.push(name)
        return name === "cancelled" ? pending : undefined
      },
    })
    const { ask, streams } = clientOf(server)
    const left = async () => (await limiter.peek({}, { cost: 0 })).remaining
    expect(await ask("answered").status).toBe(200)
    await until(() => streams.closed === 1)
    expect([await left(), statuses]).toEqual([5, [200]])
    const { cancel } = ask("cancelled")
    await until(() => handled.length === 2)
    cancel()
    await until(() => streams.closed === 2)
    answer()
    await turns()
    expect([await left(), statuses]).toEqual([4, [200]])
  })
})
