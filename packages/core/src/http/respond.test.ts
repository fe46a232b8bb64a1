import { once } from "node:events"
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import { afterEach, describe, expect, it } from "vitest"
import { createLimiter } from "../limiter/create-limiter.ts"
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

describe("the response to a refused request that has already started", () => {
  it("ends with the body that was written so far", async () => {
    const answer = await received((response) => {
      response.write("first")
      refuse(response)
    })
    expect(answer).toEqual({ body: "first", complete: true })
    expect(warnings).toContain("SLUICE_MOUNTED_TOO_LATE")
  })

  it("closes its connection if it is shorter than its Content-Length", async () => {
    const answer = await received((response) => {
      response.writeHead(200, { "Content-Length": 10 })
      response.write("first")
      refuse(response)
    })
    expect(answer).toEqual({ body: "first", complete: false })
  })

  it("survives a handler that continues to write", async () => {
    const answer = await received(async (response) => {
      response.write("first")
      refuse(response)
      response.write("second")
      await nextTurn()
      response.write("third")
    })
    expect(answer).toEqual({ body: "first", complete: true })
  })

  it("ends without arguments, so that middleware that replaces `end` does not see a chunk", async () => {
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

  it("closes its connection if it cannot be ended", async () => {
    const answer = await received((response) => {
      response.end = () => {
        throw new Error("broken middleware")
      }
      response.write("first", () => refuse(response))
    })
    expect(answer).toEqual({ body: "first", complete: false })
  })
})

describe("a response that two mounts of a limiter watch for refunds", () => {
  it("has one listener for its end", async () => {
    const statuses: number[] = []
    const limiter = createLimiter({
      limit: 5,
      window: "1 minute",
      refundWhen: (_request: object, status: number) => statuses.push(status) > 1,
    })
    const mounts = [createGuard({ limiter }), createGuard({ limiter })]
    let listeners = 0
    await received((response) => {
      const before = response.listenerCount("finish")
      const facts = { remoteAddress: "192.0.2.1" }
      for (const mount of mounts) respond(mount, facts, new NodeExchange(response.req, response, () => {}))
      listeners = response.listenerCount("finish") - before
      response.end("done")
    })
    expect([listeners, statuses]).toEqual([1, [200]])
  })
})

describe("a guard that throws refusals", () => {
  const options = { limit: 1, window: "1 minute", onMissing: "deny", throwOnRefusal: true } as const
  const throwing = createThrowingGuard({ ...options, logger: { warn: log, error: log } }, () => undefined)

  it("passes a refusal to the error handler, with the status and headers of the response", async () => {
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
