import { IncomingMessage, ServerResponse } from "node:http"
import { PassThrough } from "node:stream"
import { manualClock } from "@sluice/core/testing"
import { type RateLimitOptions, rateLimit } from "@sluice/express"
import express from "express"
import request from "supertest"
import { beforeEach, describe, expect, it } from "vitest"

const warnings: string[] = []
const log = ({ code }: { readonly code: string }): void => void warnings.push(code)
const BASE = { clock: manualClock(), logger: { warn: log, error: log }, window: "1 minute" }

beforeEach(() => {
  warnings.length = 0
})

describe("behind a proxy that sends no header, a limiter with trustedProxies", () => {
  const open = (options: Partial<RateLimitOptions>) =>
    express().use(rateLimit({ ...BASE, limit: 1_000, trustedProxies: 1, ...options } as RateLimitOptions))

  it("warns after 100 requests", async () => {
    const app = open({})
    for (let i = 0; i < 99; i++) await request(app).get("/")
    expect(warnings).toEqual([])
    for (let i = 0; i < 3; i++) await request(app).get("/")
    expect(warnings).toEqual(["SLUICE_FORWARDED_HEADER_MISSING"])
  })
})

describe("a limiter on AWS Lambda behind API Gateway", () => {
  /** Passes a request to the app as serverless-http does. The socket has the address that the gateway reports. */
  function ask(app: express.Express, sourceIp: string, forwardedFor: string): Promise<number> {
    const socket = Object.assign(new PassThrough(), { encrypted: true, remoteAddress: sourceIp })
    const asked = new IncomingMessage(socket as never)
    Object.assign(asked, { method: "GET", url: "/", headers: { host: "x", "x-forwarded-for": forwardedFor } })
    return new Promise((resolve) => {
      const response = new ServerResponse(asked)
      // The response is not connected to a client, so it never finishes.
      response.end = () => {
        resolve(response.statusCode)
        return response
      }
      app(asked as never, response as never)
    })
  }

  it("counts each client without a warning, even if the limiter is created during the first request", async () => {
    let limit: ReturnType<typeof rateLimit> | undefined
    const app = express()
      .use((req, res, next) => {
        limit ??= rateLimit({ ...BASE, limit: 1 } as RateLimitOptions)
        return limit(req, res, next)
      })
      .use((_req, res) => void res.end("ok"))
    const statuses: number[] = []
    for (const [sourceIp, forwardedFor] of [
      ["203.0.113.7", "203.0.113.7"],
      ["203.0.113.7", "203.0.113.7, 130.176.1.1"],
      ["203.0.113.8", "198.51.100.1, 203.0.113.8"],
    ] as const) {
      statuses.push(await ask(app, sourceIp, forwardedFor))
    }
    expect(statuses).toEqual([200, 429, 200])
    expect(warnings).toEqual([])
  })
})
