import { createServer, type RequestListener } from "node:http"
import { InvalidOptionError, type LimiterOptions } from "@sluice/core"
import { expectLimited, manualClock } from "@sluice/core/testing"
import { rateLimit as express } from "@sluice/express"
import sluice from "@sluice/fastify"
import createExpress from "express"
import createFastify from "fastify"
import request from "supertest"
import { afterEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../examples/src/demo/serve.ts"

const clock = manualClock()
const open: (() => PromiseLike<unknown>)[] = []
afterEach(async () => {
  clock.resetAll()
  for (const close of open.splice(0)) await close()
})

/** Creates an app in Express that admits 5 requests a minute, and whose handler responds with the path as its status. */
function limited(options: Partial<LimiterOptions<createExpress.Request>> = {}): createExpress.Express {
  const app = createExpress()
  app.use(express({ limit: 5, window: "1 minute", clock, ...options } as never))
  app.get("/:status", (req, res) => res.sendStatus(Number(req.params.status)))
  return app
}

/** Returns a function that sends requests to a server, which responds with these refusals and then status 200. */
async function answering(...refusals: Readonly<Record<string, string>>[]): Promise<() => Promise<Response>> {
  const listener: RequestListener = (_req, res) => {
    const headers = refusals.shift()
    res.writeHead(headers === undefined ? 200 : 429, headers).end()
  }
  const server: Served = await serve(createServer(listener).listeners("request")[0] as RequestListener)
  open.push(() => server.close())
  return () => fetch(server.url)
}

const messageOf = (failing: Promise<unknown>): Promise<string> =>
  failing.then(
    () => "no error",
    (error: Error) => error.message,
  )

describe("expectLimited()", () => {
  it("returns the refusal of an app that admits exactly as many requests, with each way to send them", async () => {
    const app = limited()
    const refusal = await expectLimited(() => request(app).get("/200"), 5)
    expect([refusal.status, refusal.headers["retry-after"]]).toEqual([429, "61"])

    clock.resetAll()
    const server = await serve(app)
    open.push(() => server.close())
    expect((await expectLimited(() => fetch(`${server.url}/200`), 5)).headers.get("retry-after")).toBe("61")

    const fastify = createFastify()
    open.push(() => fastify.close())
    await fastify.register(sluice, { limit: 5, window: "1 minute", clock })
    fastify.get("/", async () => "hello")
    expect((await expectLimited(() => fastify.inject("/"), 5)).statusCode).toBe(429)
    clock.advance("2 minutes")
    expect((await expectLimited(() => fastify.inject({ url: "/" }), 5)).statusCode).toBe(429)
  })

  it("expects that the next request is refused, if no request is admitted", async () => {
    const app = limited()
    await expectLimited(() => request(app).get("/200"), 5)
    await expectLimited(() => request(app).get("/200"), 0)
  })

  it("counts a response of the app below 500 as admitted, such as 401 and 404", async () => {
    for (const path of ["/204", "/302", "/401", "/404", "/without/route"]) {
      const app = limited()
      await expectLimited(() => request(app).get(path), 5)
    }
  })

  it.each<Partial<LimiterOptions<createExpress.Request>>>([
    { headers: "draft-11" },
    { headers: "next" },
    { headers: "triple" },
    { headers: ["draft-11", "legacy"] },
    { headers: false },
    { penalty: { refusals: 1, for: "10 minutes" } },
    { algorithm: "fixed-window" },
    { algorithm: "token-bucket", burst: 5 },
  ])("accepts the refusals of a limiter with %j", async (options) => {
    const app = limited(options)
    await expectLimited(() => request(app).get("/200"), 5)
    await expectLimited(() => request(app).get("/200"), 0)
  })

  it("accepts the refusal of one limit while the app's other limit has units left", async () => {
    const app = createExpress()
    app.use(express({ name: "app", limit: 100, window: "1 hour", clock }))
    app.get("/", express({ name: "route", limit: 2, window: "1 minute", clock }), (_req, res) => res.end())
    const refusal = await expectLimited(() => request(app).get("/"), 2)
    expect(refusal.headers.ratelimit).toBe('"app";r=97;t=3601, "route";r=0;t=61')
  })

  it("says which request was refused too early, and its wait", async () => {
    const app = limited()
    expect(await messageOf(expectLimited(() => request(app).get("/200"), 6))).toBe(
      "Expected 6 admitted requests and then a refusal, but request 6 was refused with status 429 (Retry-After: 61).",
    )
  })

  it("says that a request was not refused, and its status", async () => {
    const app = limited()
    expect(await messageOf(expectLimited(() => request(app).get("/404"), 4))).toBe(
      "Expected 4 admitted requests and then a refusal with status 429, but the status of request 5 is 404.",
    )
  })

  it("fails for a status from 500, because the app or the store has failed", async () => {
    const app = limited()
    expect(await messageOf(expectLimited(() => request(app).get("/500"), 5))).toBe(
      "Expected 5 admitted requests and then a refusal, but request 1 failed with status 500.",
    )
  })

  it.each([
    [{}, "Expected a refusal with a Retry-After of whole seconds, but it is undefined."],
    [{ "retry-after": "0" }, 'Expected a refusal with a Retry-After of whole seconds, but it is "0".'],
    [{ "retry-after": "1.5" }, 'Expected a refusal with a Retry-After of whole seconds, but it is "1.5".'],
    [
      { "retry-after": "61", ratelimit: '"a";r=1;t=61' },
      'Expected no remaining units for 61 seconds (Retry-After), but RateLimit is "a";r=1;t=61.',
    ],
    [
      { "retry-after": "61", ratelimit: '"a";r=0;t=6' },
      'Expected no remaining units for 61 seconds (Retry-After), but RateLimit is "a";r=0;t=6.',
    ],
    [
      { "retry-after": "61", "x-ratelimit-remaining": "3" },
      "Expected a refusal with 0 remaining units, but the RateLimit headers say 3.",
    ],
  ])("fails for a refusal with the headers %j", async (headers, message) => {
    expect(await messageOf(expectLimited(await answering(headers), 0))).toBe(message)
  })

  it("accepts an error that contains the response, because axios rejects for a status such as 429", async () => {
    let left = 2
    const get = async () => {
      const admitted = left-- > 0
      const response = admitted
        ? { status: 200, headers: {} }
        : { status: 429, headers: { "retry-after": "60" } }
      if (!admitted) throw Object.assign(new Error("Request failed with status code 429"), { response })
      return response
    }
    expect((await expectLimited(get, 2)).status).toBe(429)
  })

  it("passes on the error of a request that fails", async () => {
    const failing = () => Promise.reject(new Error("connect ECONNREFUSED"))
    await expect(expectLimited(failing, 5)).rejects.toThrow("connect ECONNREFUSED")
  })

  it("rejects invalid arguments and says what it expects", async () => {
    const app = limited()
    const sent = request(app).get("/200")
    await expect(expectLimited(sent as never, 5)).rejects.toThrow(
      /is not a function; accepted: \(\) => fetch/,
    )
    await expect(expectLimited(() => sent, -1)).rejects.toThrow(/-1 is not a number of requests/)
    const nothing = expectLimited((async () => undefined) as never, 1)
    await expect(nothing).rejects.toThrow(/request\(\): is missing; accepted: an object with status/)
    await expect(nothing).rejects.toBeInstanceOf(InvalidOptionError)
  })
})
