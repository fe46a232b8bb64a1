import { connect } from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import { createLimiter, memoryStore, type Rule, type Store } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import { manualClock } from "@sluice/core/testing"
import fastify from "fastify"
import { describe, expect, it, onTestFinished } from "vitest"
import { until } from "../servers/until.ts"
import { examples } from "../test-length.ts"
import { RESPONSES, type Reply } from "./responses.ts"
import { fastifyApp, SERVERS } from "./servers.ts"

const MOST = 100
const RULE: Rule<object> = { name: "in-flight", field: "service", concurrent: MOST }

/** Returns the store with methods that resolve in a later turn, as over a network. */
function later(store: Store): Store {
  const delayed =
    <Args extends unknown[], Result>(method: (...args: Args) => MaybePromise<Result>) =>
    async (...args: Args): Promise<Result> => {
      await nextTurn()
      return method.apply(store, args)
    }
  return {
    take: delayed(store.take),
    read: delayed(store.read),
    refund: delayed(store.refund),
    reset: delayed(store.reset),
    close: () => store.close(),
  }
}

const MEMORY: readonly [string, (store: Store) => Store] = ["a store in memory", (store) => store]
const LATER: typeof MEMORY = ["a store that responds later", later]
/** The servers that are also tested with a store that responds later. Others respond by the same code. */
const WITH_LATER: readonly string[] = ["Node", "Node over HTTP/2", "Fastify", "Hono"]

function setUp(wrap: (store: Store) => Store = (store) => store) {
  const clock = manualClock()
  const told: number[] = []
  const limiter = createLimiter<object>({
    ...{ clock, rules: [RULE], store: wrap(memoryStore({ clock })) },
    refundWhen: (_request, status) => told.push(status) < 0,
  })
  onTestFinished(() => limiter.close())
  /** Returns the permits that this process holds, and the permits that the store counts. */
  const permits = async () => {
    const { remaining } = await limiter.peek({}, { cost: 0 })
    return [limiter.status.inFlight, MOST - remaining]
  }
  const allReleased = (of: string) =>
    until(`the permit of ${of} is released`, async () => String(await permits()) === "0,0", 2_000)
  return { limiter, told, permits, allReleased }
}

describe.each(Object.entries(SERVERS))("on %s", (server, start) => {
  const hasNodeResponse = server !== "Hono"

  describe.each(WITH_LATER.includes(server) ? [MEMORY, LATER] : [MEMORY])("with %s", (_store, wrap) => {
    for (const [name, response] of Object.entries(RESPONSES)) {
      const { method = "GET", path = "/", handle, receive = (call) => call.read() } = response
      if (response.isTakenOver && !hasNodeResponse) continue
      it(`a request holds a permit until its response has closed: ${name}`, async () => {
        const { limiter, permits, allReleased } = setUp(wrap)
        let running: unknown
        let reached = () => {}
        const wasReached = new Promise<void>((resolve) => {
          reached = resolve
        })
        const { client } = await start(limiter, async (reply) => {
          running = await permits()
          reached()
          return handle?.(reply)
        })
        for (let i = 0; i < 2; i++) {
          const call = client(method, path)
          if (handle !== undefined) {
            await wasReached
            expect(running).toEqual([1, 1])
          }
          await receive(call)
          await allReleased(name)
        }
      })
    }
  })
})

describe.each(Object.entries(SERVERS).filter(([name]) => !/HTTP\/2|Hono/.test(name)))(
  "over pipelined connections, on %s",
  (_server, start) => {
    const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    /** Starts a server whose responses the test sends, and a client that pipelines three requests. */
    async function pipelined() {
      const { limiter, ...more } = setUp()
      const replies: ((body: string) => void)[] = []
      const { url } = await start(limiter, async (reply: Reply) => {
        const body = await new Promise<string>((resolve) => replies.push(resolve))
        return reply.send(200, body)
      })
      const { hostname, port } = new URL(url)
      const socket = connect(Number(port), hostname).on("error", () => undefined)
      onTestFinished(() => void socket.destroy())
      let text = ""
      socket.setEncoding("latin1").on("data", (chunk: string) => {
        text += chunk
      })
      socket.write(REQUEST.repeat(3))
      await until("all requests run", () => replies.length === 3, 2_000)
      return { ...more, replies, socket, text: () => text }
    }

    it("each request holds a permit until its own response has closed", async () => {
      const { permits, allReleased, replies, text, told } = await pipelined()
      expect(await permits()).toEqual([3, 3])
      replies[2]?.("third")
      replies[1]?.("second")
      await nextTurn()
      expect(await permits()).toEqual([3, 3])
      replies[0]?.("first")
      await allReleased("all three")
      await until("all bodies have arrived", () => text().includes("third"), 2_000)
      expect(told).toEqual([200, 200, 200])
    })

    it("a client that hangs up releases the permits of queued responses, and keeps their units", async () => {
      const { allReleased, replies, socket, told } = await pipelined()
      replies[2]?.("third")
      await nextTurn()
      socket.destroy()
      await allReleased("all three")
      replies[1]?.("second")
      await nextTurn()
      expect(told).toEqual([])
    })
  },
)

describe("in Fastify's inject", () => {
  for (const [name, { method = "GET", path = "/", handle, receive }] of Object.entries(RESPONSES)) {
    if (receive !== undefined) continue
    it(`a request holds a permit until its response has closed: ${name}`, async () => {
      const { limiter, permits, told, allReleased } = setUp()
      let running: unknown
      const app = await fastifyApp(fastify(), limiter, async (reply) => {
        running = await permits()
        return handle?.(reply)
      })
      const response = await app.inject({ method: method as "GET", url: path }).catch(() => undefined)
      if (handle !== undefined) expect(running).toEqual([1, 1])
      await allReleased(name)
      if (response !== undefined) expect(told).toEqual([response.statusCode])
    })
  }
})

it("clients that hang up in the body of a stream leave no permits", { timeout: 120_000 }, async () => {
  const { limiter, allReleased } = setUp()
  const { client } = await (SERVERS.Node as (typeof SERVERS)[string])(limiter, (reply) =>
    RESPONSES["a stream for a client that hangs up"]?.handle?.(reply),
  )
  const statuses = new Set<number | undefined>()
  let left = examples(500, 10_000)
  const hangUp = async () => {
    while (left-- > 0) {
      const call = client("GET", "/")
      statuses.add(await call.status)
      call.hangUp()
    }
  }
  await Promise.all(Array.from({ length: 20 }, hangUp))
  expect([...statuses]).toEqual([200])
  await allReleased("all clients")
})
