import { memoryStore, type Store } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import fastify, { type FastifyReply } from "fastify"
import { describe, expect, it } from "vitest"
import { methodsOf } from "../../core/src/stores/testing/methods-of.ts"
import { rateLimit } from "./index.ts"

const clock = manualClock()
const once = { clock, limit: 1, window: "1 minute" } as const

/** Creates a memory store that returns each result asynchronously, after calling `before`. */
function laterStore(before: () => Promise<void> = async () => undefined): Store {
  const store = memoryStore({ clock })
  return {
    ...methodsOf(store),
    take: async (checks) => {
      await before()
      return store.take(checks)
    },
  }
}

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

describe("a refusal by the plugin", () => {
  it("is sent unchanged, even if the app changes its own responses and errors", async () => {
    const bodies: unknown[] = []
    const app = fastify()
    app.setErrorHandler((_error, _request, reply) => reply.code(500).send("handled"))
    app.setReplySerializer(() => "serialized")
    app.addHook("preSerialization", async () => ({ serialized: true }))
    app.addHook("onRequest", async (_request, reply) => {
      reply.header("access-control-allow-origin", "*").serializer(() => "serialized")
    })
    app.addHook("onSend", async (_request, reply, payload) => {
      bodies.push(payload)
      reply.header("x-sent", "yes")
    })
    app.register(rateLimit, once)
    app.get("/", { schema: { response: { "4xx": { type: "object", properties: {} } } } }, async () => ({}))
    await app.inject("/")
    const { statusCode, headers, body } = await app.inject("/")
    expect(statusCode).toBe(429)
    expect(JSON.parse(body).status).toBe(429)
    expect(bodies.at(-1)).toBe(body)
    expect(headers).toMatchObject({
      "content-type": "application/problem+json",
      "content-length": String(body.length),
      "access-control-allow-origin": "*",
      "x-sent": "yes",
      "cache-control": "no-store",
      ratelimit: '"ip-1m";r=0;t=61',
    })
    const text = await app.inject({ url: "/", headers: { accept: "text/plain" } })
    expect(text.headers["content-type"]).toBe("text/plain; charset=utf-8")
    expect(text.body).toMatch(/^Quota Exceeded: ip-1m\n/)
  })

  it("is replaced by the app's error response if an onSend hook fails", async () => {
    const app = fastify()
    let fails = false
    app.setErrorHandler((error: Error, _request, reply) => reply.code(500).send(`handled: ${error.message}`))
    app.addHook("onSend", async () => {
      if (!fails) return
      fails = false
      throw new Error("no")
    })
    app.register(rateLimit, once)
    await app.inject("/")
    fails = true
    const { statusCode, body } = await app.inject("/")
    expect([statusCode, body]).toEqual([500, "handled: no"])
    await app.close()
  })

  it("is not an error, so onError hooks do not run", async () => {
    let errors = 0
    const app = fastify()
    app.addHook("onError", async () => {
      errors++
    })
    app.register(rateLimit, once)
    await app.inject("/")
    expect((await app.inject("/")).statusCode).toBe(429)
    expect(errors).toBe(0)
  })

  it("is not sent if the app takes over the reply during the store call", async () => {
    const asked = gate()
    const taken = gate()
    let rejected = 0
    const app = fastify()
    app.addHook("onRequest", (_request, reply, done) => {
      void asked.opened.then(() => {
        reply.hijack().raw.end("mine")
        taken.open()
      })
      done()
    })
    const store = laterStore(async () => {
      asked.open()
      await taken.opened
    })
    const onRejected = () => void rejected++
    app.register(rateLimit, {
      ...once,
      cost: 2,
      limit: 2,
      hook: "onRequest",
      storeTimeoutMs: 60_000,
      onRejected,
      store,
    })
    app.get("/", async () => "ok")
    expect((await app.inject("/")).body).toBe("mine")
    expect((await app.inject("/")).body).toBe("mine")
    expect(rejected).toBe(0)
  })
})

describe("onRejected", () => {
  it.each([
    ["synchronously", (reply: FastifyReply) => void reply.code(402).send("pay")],
    ["and return the reply", (reply: FastifyReply) => reply.code(402).send("pay") as never],
    ["in an async function", async (reply: FastifyReply) => void reply.code(402).send("pay")],
    [
      "in an async function that returns the reply",
      async (reply: FastifyReply) => (await reply.code(402).send("pay")) as never,
    ],
    [
      "and then throw",
      (reply: FastifyReply) => {
        reply.code(402).send("pay")
        throw new Error("after")
      },
    ],
    ["with a redirect", (reply: FastifyReply) => void reply.header("location", "/pay").code(402).send("pay")],
  ])("can send its own response %s, while onSend hooks are still running", async (_how, answer) => {
    const sent: unknown[] = []
    const app = fastify()
    app.addHook("onSend", async (_request, _reply, payload) => {
      sent.push(payload)
    })
    const log = () => undefined
    app.register(rateLimit, {
      ...once,
      logger: { warn: log, error: log },
      onRejected: (_request, _rejection, _decision, reply) => answer(reply as FastifyReply),
    })
    app.get("/", async () => "ok")
    await app.inject("/")
    const { statusCode, body, headers } = await app.inject("/")
    expect([statusCode, body, headers.ratelimit]).toEqual([402, "pay", '"ip-1m";r=0;t=61'])
    expect(sent).toEqual(["ok", "pay"])
  })

  it("can take over the reply, so that nothing else is sent", async () => {
    const logged: string[] = []
    const app = fastify({ logger: { level: "warn", stream: { write: (line) => void logged.push(line) } } })
    app.register(rateLimit, {
      ...once,
      onRejected: (_request, _rejection, _decision, reply) => {
        ;(reply as FastifyReply).hijack().raw.end("mine")
      },
    })
    app.get("/", async () => "ok")
    await app.inject("/")
    expect((await app.inject("/")).body).toBe("mine")
    expect(logged).toEqual([])
    await app.close()
  })
})

describe("refundWhen", () => {
  const failuresOnly = { ...once, limit: 2, refundWhen: (_request: unknown, status: number) => status < 400 }

  it("refunds units depending on the status, on every kind of route", async () => {
    const logged: string[] = []
    const app = fastify({ logger: { level: "warn", stream: { write: (line) => void logged.push(line) } } })
    app.register(rateLimit, failuresOnly)
    const handler = async () => "ok"
    app.get("/", handler)
    app.get("/own", { config: { rateLimit: { limit: 2, window: "1 minute" } } }, handler)
    app.post("/late", { config: { rateLimit: { limit: 2, window: "1 minute", field: "body:a" } } }, handler)
    app.get("/free", { config: { rateLimit: false } }, handler)
    app.get("/fails", async (_request, reply) => reply.code(403).send())
    for (let i = 0; i < 5; i++) {
      expect((await app.inject("/")).statusCode).toBe(200)
      expect((await app.inject("/own")).statusCode).toBe(200)
      expect((await app.inject({ method: "POST", url: "/late", payload: { a: 1 } })).statusCode).toBe(200)
    }
    const statuses = []
    // A route without a limit has nothing to refund.
    expect((await app.inject("/free")).statusCode).toBe(200)
    expect(logged).toEqual([])
    for (const url of ["/fails", "/none", "/", "/own"]) statuses.push((await app.inject(url)).statusCode)
    expect(statuses).toEqual([403, 404, 429, 200])
  })
})

it("the plugin passes an error that follows an asynchronous decision to the error handler", async () => {
  const app = fastify()
  app.addHook("onRequest", async (_request, reply) => {
    reply.header = () => {
      throw new Error("broken plugin")
    }
  })
  await app.register(rateLimit, { ...once, store: laterStore() })
  app.setErrorHandler((error: Error, _request, reply) => {
    reply.raw.end(error.message)
  })
  app.get("/", async () => "ok")
  expect((await app.inject("/")).body).toBe("broken plugin")
  await app.close()
})
