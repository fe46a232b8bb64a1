import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import type { FastifyInstance, FastifyRequest } from "fastify"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type DecisionClient, openDecisionClient } from "../../examples/src/gateway/decision-client.ts"
import { createGateway, type WhenGone } from "../../examples/src/gateway/gateway.ts"
import { type HttpServer, startHttpServer } from "../servers/http-server.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { openService, type Started, startService, TWO_SERVICES } from "./started.ts"

describe("the gateway of the examples", () => {
  let upstream: HttpServer
  let started: Started
  let decisions: DecisionClient
  const forwarded: string[] = []
  const gateways: FastifyInstance[] = []

  beforeAll(async () => {
    upstream = await startHttpServer((request, response) => {
      forwarded.push(`${request.method} ${request.url}`)
      response.setHeader("x-upstream", "yes")
      response.setHeader("ratelimit", '"its-own";r=99;t=60')
      response.end("from upstream")
    })
    started = await startService(TWO_SERVICES)
    decisions = openDecisionClient(started.grpc, 20_000)
  })
  afterEach(async () => {
    forwarded.length = 0
    for (const gateway of gateways.splice(0)) await gateway.close()
  })
  afterAll(async () => {
    decisions.close()
    await started.stop()
    await upstream.close()
  })

  /** Opens a gateway with rules, or without rules if another upstream is given. */
  async function open(whenGone: WhenGone, client: DecisionClient = decisions, to?: string): Promise<string> {
    const serviceId = to === undefined ? 1 : 9
    const gateway = createGateway({ upstream: to ?? upstream.url, serviceId, decisions: client, whenGone })
    gateways.push(gateway)
    return gateway.listen({ host: "127.0.0.1", port: 0 })
  }
  const ask = (address: string, user: string, path = "/items?page=2"): Promise<Response> =>
    fetch(address + path, { headers: { "x-user-id": user } })

  it("forwards what its rules allow, with the headers of the decision", async () => {
    const response = await ask(await open("closed"), "ada")
    expect(response.status).toBe(200)
    expect(await response.text()).toBe("from upstream")
    expect(response.headers.get("x-upstream")).toBe("yes")
    expect(response.headers.get("ratelimit-policy")).toBe('"per-user";q=5;w=60')
    expect(response.headers.get("ratelimit")).toMatch(/^"per-user";r=4;t=\d+$/)
    expect(forwarded).toEqual(["GET /items?page=2"])
  })

  it("responds to a client over the limit with a complete refusal, and forwards nothing", async () => {
    const address = await open("closed")
    for (let asked = 0; asked < 5; asked++) expect((await ask(address, "bob")).status).toBe(200)
    const refused = await ask(address, "bob")
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
    expect(refused.headers.get("content-type")).toMatch(/^application\/problem\+json/)
    expect(await refused.json()).toMatchObject({ rejection: "retry-with-exponential-backoff", status: 429 })
    expect(forwarded).toHaveLength(5)
  })

  it.each([
    ["a form", "POST", "application/x-www-form-urlencoded", "a=1&b=2"],
    ["JSON, byte by byte", "PUT", "application/json", '{ "amount" : 1.0, "__proto__": {} }'],
    ["a body that is JSON only by its type", "POST", "application/json", "{"],
    ["an empty body with the JSON type", "DELETE", "application/json", ""],
    ["a body without a type", "PATCH", "", "text"],
    ["more than a mebibyte", "POST", "application/octet-stream", "x".repeat(1_100_000)],
  ])("forwards a body unchanged: %s", async (_what, method, type, body) => {
    const echo = await startHttpServer((request, response) => {
      response
        .setHeader("x-method", request.method ?? "")
        .setHeader("x-type", request.headers["content-type"] ?? "")
      request.pipe(response)
    })
    const address = await open("closed", decisions, echo.url)
    const headers = type === "" ? undefined : { "content-type": type }
    const response = await fetch(address, { method, headers, body: Buffer.from(body) } as RequestInit)
    expect([response.status, response.headers.get("x-method"), response.headers.get("x-type")]).toEqual([
      200,
      method,
      type,
    ])
    expect((await response.text()) === body).toBe(true)
    await echo.close()
  })

  it("responds with 502 when the upstream is unavailable, without revealing its address", async () => {
    const response = await fetch(await open("closed", decisions, "http://127.0.0.1:1"))
    expect([response.status, await response.text()]).toEqual([502, "Please try again later.\n"])
  })

  it.each([70_000, 5_000_000])(
    "responds with 431 to %d characters that cannot be decided, instead of admitting the request as in an outage",
    async (length) => {
      const verdict = await decisions.ask(1, { user_id: "x".repeat(length) })
      expect(verdict).toMatchObject({ shouldForward: false, statusCode: 431 })
      expect(await decisions.ask(1, { user_id: "cyd" })).toMatchObject({ shouldForward: true })
    },
  )

  it("holds a delayed request without delaying other requests", async () => {
    const shaped = await openService(
      "service_id: 1\nrules: { name: even, field: user_id, algorithm: leaky-bucket, throttle: hard, burst: 2, limit: 1, window: 1 second }\n",
    )
    const client = openDecisionClient(shaped.grpc, 20_000)
    const address = await open("closed", client)
    await ask(address, "ada", "/first")
    const held = ask(address, "ada", "/second")
    await ask(address, "bob", "/other")
    expect((await held).status).toBe(200)
    expect(forwarded).toEqual(["GET /first", "GET /other", "GET /second"])
    client.close()
  })

  it("does not consider the service unavailable while one request is held and others are answered", async () => {
    const held = await openService(
      "service_id: 1\nrules: { name: slow, field: user_id, limit: 1, window: 1 day, throttle: { kind: queue, max_wait_ms: 86400000 } }\n",
    )
    const client = openDecisionClient(held.grpc, 1_000)
    expect(await client.ask(1, { user_id: "held" })).toMatchObject({ shouldForward: true })
    let isOver = false
    const late = client.ask(1, { user_id: "held" }).catch((error: { code?: number }) => {
      isOver = true
      return error.code
    })
    for (let user = 0; !isOver; user++) await client.ask(1, { user_id: `other ${user}` })
    expect(await late).toBe(4)
    expect(await client.ask(1, { user_id: "after" })).toMatchObject({ shouldForward: true })
    client.close()
  })

  it("decides by itself while the service hangs or is unavailable, and uses the service again afterwards", async () => {
    const [host, port] = started.grpc.split(":") as [string, string]
    const proxy = await startProxy({ host, port: Number(port) })
    const said: string[] = []
    const client = openDecisionClient(`${proxy.host}:${proxy.port}`, 500, (line) => said.push(line))
    const address = await open("closed", client)
    let user = 0
    const statusIs = (expected: number) => async () =>
      (await ask(address, `back ${user++}`)).status === expected
    await until("it is asked", statusIs(200))
    proxy.pause()
    expect(await statusIs(503)()).toBe(true)
    proxy.resume()
    await until("it is asked again", statusIs(200))
    proxy.refuse()
    proxy.cut()
    await until("it is missed", statusIs(503))
    await proxy.accept()
    await until("it is asked again", statusIs(200))
    // The log contains one line for each outage, regardless of the number of requests and retries.
    const gone = expect.stringMatching(/^The decision service at 127\.0\.0\.1:\d+ does not respond: \d+ \w+/)
    const back = `The decision service at ${proxy.host}:${proxy.port} responds again`
    expect(said).toEqual([gone, back, gone, back])
    client.close()
    await proxy.close()
  })

  it("uses the instances of the service in turn, and only the remaining instance after one exits", async () => {
    const instances = [await openService(TWO_SERVICES), await openService(TWO_SERVICES)]
    const proxies = await Promise.all(
      instances.map(({ grpc }) => startProxy({ host: "127.0.0.1", port: Number(grpc.split(":")[1]) })),
    )
    const target = proxies.map(({ host, port }) => `${host}:${port}`).join(",")
    const client = openDecisionClient(`ipv4:${target}`, 20_000)
    const address = await open("closed", client)
    // Each instance counts separately here, so the remaining units show which instance has decided.
    const remainingOf = async (user: string, requests: number): Promise<string[]> => {
      const seen: string[] = []
      for (let i = 0; i < requests; i++) {
        const { headers } = await ask(address, user)
        seen.push(/r=(\d)/.exec(headers.get("ratelimit") ?? "")?.[1] ?? "none")
      }
      return seen
    }
    let user = 0
    await until("both are used", async () => new Set(await remainingOf(`both ${user++}`, 2)).size === 1)
    expect(await remainingOf("ann", 4)).toEqual(["4", "4", "3", "3"])
    proxies[0]?.refuse()
    proxies[0]?.cut()
    await until("one is left", async () => (await remainingOf(`one ${user++}`, 2)).join() === "4,3")
    expect(await remainingOf("bob", 6)).toEqual(["4", "3", "2", "1", "0", "0"])
    client.close()
    for (const proxy of proxies) await proxy.close()
  })

  describe("while the decision service is gone", () => {
    let gone: DecisionClient
    beforeAll(async () => {
      const other = await startService(TWO_SERVICES)
      gone = openDecisionClient(other.grpc)
      await other.stop()
    })
    afterAll(() => gone.close())

    it("forwards everything if set to open", async () => {
      const address = await open("open", gone)
      for (let asked = 0; asked < 7; asked++) expect((await ask(address, "eve")).status).toBe(200)
    })

    it("forwards nothing if set to closed", async () => {
      const refused = await ask(await open("closed", gone), "eve")
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"])
      expect(forwarded).toEqual([])
    })

    it("uses its own limiter if set to local", async () => {
      const clock = manualClock()
      const limiter = createLimiter<FastifyRequest>({ limit: 2, window: "1 minute", field: "service", clock })
      const address = await open(limiter, gone)
      const statuses = [await ask(address, "a"), await ask(address, "b"), await ask(address, "c")]
      expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429])
      expect(Number(statuses[2]?.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
      await limiter.close()
    })
  })
})
