import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { createLimiter, manualClock } from "@sluice/core"
import type { FastifyInstance, FastifyRequest } from "fastify"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type DecisionClient, openDecisionClient } from "../../examples/src/gateway/decision-client.ts"
import { createGateway, type WhenGone } from "../../examples/src/gateway/gateway.ts"
import { type Started, startService, TWO_SERVICES } from "./started.ts"

describe("the gateway of the examples", () => {
  let upstream: Server
  let started: Started
  let decisions: DecisionClient
  const forwarded: string[] = []
  const gateways: FastifyInstance[] = []

  beforeAll(async () => {
    upstream = createServer((request, response) => {
      forwarded.push(`${request.method} ${request.url}`)
      response.setHeader("x-upstream", "yes")
      response.setHeader("ratelimit", '"its-own";r=99;t=60')
      response.end("from upstream")
    })
    await new Promise<void>((resolve) => {
      upstream.listen(0, "127.0.0.1", resolve)
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
    upstream.close()
  })

  async function open(whenGone: WhenGone, client: DecisionClient = decisions): Promise<string> {
    const { port } = upstream.address() as AddressInfo
    const gateway = createGateway({
      upstream: `http://127.0.0.1:${port}`,
      serviceId: 1,
      decisions: client,
      whenGone,
    })
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

  it("answers whoever is over the limit with all that it needs, and forwards nothing of it", async () => {
    const address = await open("closed")
    for (let asked = 0; asked < 5; asked++) expect((await ask(address, "bob")).status).toBe(200)
    const refused = await ask(address, "bob")
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
    expect(refused.headers.get("content-type")).toMatch(/^application\/problem\+json/)
    expect(await refused.json()).toMatchObject({ rejection: "retry-with-exponential-backoff", status: 429 })
    expect(forwarded).toHaveLength(5)
  })

  describe("while the decision service is gone", () => {
    let gone: DecisionClient
    beforeAll(async () => {
      const other = await startService(TWO_SERVICES)
      gone = openDecisionClient(other.grpc)
      await other.stop()
    })
    afterAll(() => gone.close())

    it("forwards everything, where that was chosen", async () => {
      const address = await open("open", gone)
      for (let asked = 0; asked < 7; asked++) expect((await ask(address, "eve")).status).toBe(200)
    })

    it("forwards nothing, where that was chosen", async () => {
      const refused = await ask(await open("closed", gone), "eve")
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"])
      expect(forwarded).toEqual([])
    })

    it("goes by a limiter of its own, where that was chosen", async () => {
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
