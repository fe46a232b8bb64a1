import { once } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { tokens } from "@sluice/service"
import { describe, expect, it, onTestFinished } from "vitest"
import { startService, TWO_SERVICES } from "./started.ts"

const PATH = "/sluice.v1.RateLimiter/ShouldForwardRequest"
const TOKEN = "0123456789abcdef"

async function open(parts: Parameters<typeof startService>[1] = {}) {
  const service = await startService(TWO_SERVICES, parts)
  onTestFinished(() => service.stop())
  const { port } = new URL(service.http)
  /** Requests a decision like a web page whose host name resolves to a loopback address. */
  return async (host: string, headers: object = {}, path = PATH): Promise<number | undefined> => {
    const asked = request({
      ...{ host: "127.0.0.1", port, path, method: "POST" },
      headers: { host: host.replace("PORT", port), "content-type": "application/json", ...headers },
    }).end('{"service_id":1,"request":{"user_id":"7"}}')
    const [response] = (await once(asked, "response")) as [IncomingMessage]
    response.resume()
    return response.statusCode
  }
}

describe("the decision service on loopback, without tokens", () => {
  it("responds to a call with a Host of this machine, and refuses a call with another Host", async () => {
    const ask = await open()
    expect([await ask("localhost:PORT"), await ask("evil.example:PORT")]).toEqual([200, 403])
  })

  it("responds to a gateway's check, which contains the Host header of the gateway's client", async () => {
    const ask = await open()
    const described = { "x-original-method": "GET", "x-original-uri": "/", "x-forwarded-for": "192.0.2.1" }
    expect(await ask("shop.example", described, "/check/1")).toBe(204)
  })
})

it("the decision service responds to a call with any Host if decisions and registrations need a token", async () => {
  const ask = await open({ tokens: tokens({ "*": TOKEN }), decideTokens: tokens({ "*": TOKEN }) })
  expect(await ask("ratelimit.internal", { authorization: `Bearer ${TOKEN}` })).toBe(200)
  expect(await ask("ratelimit.internal")).toBe(401)
})
