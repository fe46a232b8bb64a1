import { once } from "node:events"
import { Agent, createServer, get, IncomingMessage, ServerResponse } from "node:http"
import { type AddressInfo, Socket } from "node:net"
import { Writable } from "node:stream"
import { setImmediate as nextTurn } from "node:timers/promises"
import { afterEach, describe, expect, it, vi } from "vitest"
import { createLimiter } from "../limiter/create-limiter.ts"
import type { Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createGuard, createThrowingGuard } from "./guard/create-guard.ts"
import { NodeExchange, respond } from "./respond.ts"

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const warnings: string[] = []
const log = ({ code }: { readonly code: string }) => void warnings.push(code)
const guard = createGuard({
  limit: 1,
  window: "1 minute",
  onMissing: "deny",
  logger: { warn: log, error: log },
})

/** Refuses a request, because it lacks the address that the rule requires. */
function refuse(response: ServerResponse): void {
  respond(guard, {}, new NodeExchange(response.req, response, () => expect.unreachable()))
}

/**
 * Returns the body that a client receives after `handle` has handled the response, and whether this body was
 * complete.
 */
async function received(handle: (response: ServerResponse) => unknown) {
  const server = createServer((_request, response) => void handle(response))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closing.push(() => new Promise((resolve) => server.close(resolve)))
  const { port } = server.address() as AddressInfo
  const [message] = (await once(get({ port, host: "127.0.0.1" }), "response")) as [IncomingMessage]
  let body = ""
  message.setEncoding("utf8").on("data", (part: string) => {
    body += part
  })
  message.on("error", () => undefined)
  await new Promise((resolve) => message.on("close", resolve))
  return { body, complete: message.complete }
}

describe("a response that has already started when its request is refused", () => {
  it("ends with the body that was written so far", async () => {
    const answer = await received((response) => {
      response.write("first")
      refuse(response)
    })
    expect(answer).toEqual({ body: "first", complete: true })
    expect(warnings).toContain("SLUICE_MOUNTED_TOO_LATE")
  })

  it("is aborted if its body is shorter than its Content-Length", async () => {
    const answer = await received((response) => {
      response.writeHead(200, { "Content-Length": 10 })
      response.write("first")
      refuse(response)
    })
    expect(answer).toEqual({ body: "first", complete: false })
  })

  it("leaves its connection open if it has no Content-Length", async () => {
    const agent = new Agent({ keepAlive: true })
    closing.push(() => agent.destroy())
    const ports: unknown[] = []
    const server = createServer((_request, response) => {
      ports.push(response.socket?.remotePort)
      response.write("first")
      refuse(response)
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    closing.push(() => server.close())
    const { port } = server.address() as AddressInfo
    for (let i = 0; i < 2; i++) {
      const [message] = (await once(get({ port, host: "127.0.0.1", agent }), "response")) as [IncomingMessage]
      await once(message.resume(), "end")
      await nextTurn()
    }
    expect(ports[1]).toBe(ports[0])
  })

  it("omits what the handler writes later", async () => {
    const answer = await received(async (response) => {
      response.write("first")
      refuse(response)
      response.write("second")
      await nextTurn()
      response.write("third")
    })
    expect(answer).toEqual({ body: "first", complete: true })
  })

  it("is ended by `end()` without arguments, so that middleware sees no chunk", async () => {
    const calls: unknown[][] = []
    const answer = await received((response) => {
      const { end } = response
      response.end = (...passed: unknown[]) => {
        calls.push(passed)
        return Reflect.apply(end, response, [])
      }
      response.writeHead(200, { "Content-Length": 10 })
      response.write("first")
      refuse(response)
    })
    expect([answer, calls]).toEqual([{ body: "first", complete: false }, [[]]])
  })

  it("is aborted if its `end` method throws", async () => {
    const answer = await received((response) => {
      response.end = () => {
        throw new Error("broken middleware")
      }
      response.write("first", () => refuse(response))
    })
    expect(answer).toEqual({ body: "first", complete: false })
  })
})

describe("the response to a refused request on a simulated connection", () => {
  /** Returns a response that has begun, shorter than its Content-Length. */
  function begun(): ServerResponse {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    response.writeHead(200, { "Content-Length": 10 })
    response.write("first")
    return response
  }
  const connection = () => new Writable({ write: (_chunk, _encoding, done) => done() }) as Socket

  it("ends if the connection cannot be closed", async () => {
    const response = begun()
    response.assignSocket(connection())
    refuse(response)
    await once(response, "finish")
    expect(response.writableEnded).toBe(true)
  })

  it("ends if the response has no connection yet, as behind another response of the same client", async () => {
    const response = begun()
    refuse(response)
    response.assignSocket(connection())
    await once(response, "finish")
    expect(response.writableEnded).toBe(true)
  })

  it("throws nothing if the response has no connection and cannot be ended", () => {
    const response = begun()
    response.end = () => {
      throw new Error("broken middleware")
    }
    expect(() => refuse(response)).not.toThrow()
  })
})

describe("an onRejected that throws", () => {
  /** Returns the error that the framework receives, for a request that `onRejected` handles. */
  async function errorAfter(onRejected: (response: ServerResponse) => void) {
    const messages: string[] = []
    const write = (_fields: object, message: string) => void messages.push(message)
    const asking = createGuard({
      ...{ limit: 1, window: "1 minute", onMissing: "deny", logger: { warn: write, error: write } },
      async onRejected(_request, _rejection, _decision, response) {
        onRejected(response as ServerResponse)
        throw new Error("broken")
      },
    })
    let thrown: unknown
    await received(async (response) => {
      const exchange = new NodeExchange(response.req, response, () => expect.unreachable())
      await Promise.resolve(respond(asking, {}, exchange)).catch((error) => {
        thrown = error
        response.end()
      })
    })
    return { thrown, messages: messages.filter((message) => message.includes("onRejected failed")) }
  }

  it("leaves a response that it has started to the framework", async () => {
    const { thrown, messages } = await errorAfter((response) => response.write("first"))
    expect([thrown, messages]).toEqual([new Error("broken"), []])
  })

  it("causes a warning with the error if the response is complete", async () => {
    const { thrown, messages } = await errorAfter((response) => response.end("all"))
    const warning = expect.stringContaining("onRejected failed after it had responded: Error: broken.")
    expect([thrown, messages]).toEqual([undefined, [warning]])
  })
})

describe("a response whose end a limiter needs", () => {
  const facts = { remoteAddress: "192.0.2.1" }
  const rate = { name: "rate", field: "service", limit: 5, window: "1 minute" } as const
  const permits = { name: "in-flight", field: "service", concurrent: 5 } as const

  it.each<[string, boolean, readonly Rule[], number]>([
    ["a rate", false, [rate], 0],
    ["a rate and refundWhen", true, [rate], 1],
    ["permits", false, [permits], 1],
    ["permits and refundWhen", true, [rate, permits], 1],
  ])(
    "has one listener for several mounts with %s only if it is needed",
    async (_rules, refunds, rules, expected) => {
      const statuses: number[] = []
      const refundWhen = (_request: object, status: number) => statuses.push(status) > 1
      const limiter = createLimiter<object>({ rules, ...(refunds && { refundWhen }) })
      const mounts = [createGuard({ limiter }), createGuard({ limiter })]
      let listeners = 0
      await received((response) => {
        const before = response.listenerCount("close")
        for (const mount of mounts) respond(mount, facts, new NodeExchange(response.req, response, () => {}))
        listeners = response.listenerCount("close") - before
        expect(limiter.status.inFlight).toBe(rules.includes(permits) ? 1 : 0)
        response.end("done")
      })
      expect([listeners, statuses]).toEqual([expected, refunds ? [200] : []])
      expect(limiter.status.inFlight).toBe(0)
    },
  )

  it("needs no permits if it closed before the store has decided", async () => {
    const store = memoryStore()
    let decide = () => {}
    const pending = new Promise<void>((resolve) => {
      decide = resolve
    })
    const statuses: number[] = []
    const limiter = createLimiter<object>({
      rules: [permits],
      store: { ...methodsOf(store), take: (checks) => pending.then(() => store.take(checks)) },
      refundWhen: (_request, status) => statuses.push(status) > 1,
    })
    const mount = createGuard({ limiter })
    let handled: unknown
    await received((response) => {
      handled = respond(mount, facts, new NodeExchange(response.req, response, () => {}))
      response.end("done")
      response.once("close", decide)
    })
    await handled
    expect([limiter.status.inFlight, (await limiter.peek(facts)).remaining, statuses]).toEqual([0, 5, []])
  })
})

describe("a guard that throws refusals", () => {
  const options = { limit: 1, window: "1 minute", onMissing: "deny", throwOnRefusal: true } as const
  const throwing = createThrowingGuard({ ...options, logger: { warn: log, error: log } }, () => undefined)

  it("passes a RefusalError to the error handler, and sets the status of the response", async () => {
    const { body } = await received((response) => {
      const next = (error?: Error) => response.end(`${response.statusCode} ${error?.name}`)
      respond(throwing, {}, new NodeExchange(response.req, response, next))
    })
    expect(body).toBe("400 RefusalError")
  })

  it("sends the response if the exchange has no method `fail`", async () => {
    const { body } = await received((response) => {
      const exchange = new NodeExchange(response.req, response, () => expect.unreachable())
      respond(throwing, {}, Object.assign(exchange, { fail: undefined }))
    })
    expect(JSON.parse(body)).toMatchObject({ status: 400 })
  })
})

describe("the permits of a request", () => {
  function limited() {
    let asked = 0
    const limiter = createLimiter({
      rules: [{ name: "few", field: "service", concurrent: 5 }],
      refundWhen() {
        asked++
        return false
      },
    })
    closing.push(() => limiter.close())
    return { limiter, asked: () => asked }
  }

  it("are released when a response without a server has been sent, although it never closes", async () => {
    const { limiter, asked } = limited()
    const connection = new Writable({ write: (_chunk, _encoding, done) => done() })
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    response.assignSocket(connection as Socket)
    response.once("close", () => expect.unreachable())
    respond(
      createGuard({ limiter }),
      {},
      new NodeExchange(response.req, response, () => response.end("done")),
    )
    expect(limiter.status.inFlight).toBe(1)
    await once(response, "finish")
    await nextTurn()
    expect([limiter.status.inFlight, asked()]).toEqual([0, 1])
  })

  it("of a later mount are released if the client has gone since the first mount", async () => {
    const { limiter } = limited()
    const counts: number[] = []
    await received(async (response) => {
      const pass = () =>
        respond(createGuard({ limiter }), {}, new NodeExchange(response.req, response, () => undefined))
      pass()
      response.destroy()
      await once(response, "close")
      counts.push(limiter.status.inFlight)
      pass()
      await nextTurn()
      counts.push(limiter.status.inFlight)
    }).catch(() => undefined)
    await vi.waitFor(() => expect(counts).toEqual([0, 0]))
  })
})
