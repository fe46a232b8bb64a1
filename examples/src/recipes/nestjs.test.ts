import "reflect-metadata"
import { Controller, Get, type INestApplication, Module, UseGuards } from "@nestjs/common"
import { NestFactory } from "@nestjs/core"
import { manualClock } from "@sluice/core"
import type { Request } from "express"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { rateLimitGuard } from "./nestjs.ts"

const clock = manualClock()
let ran: string[]
let app: INestApplication
let url: string

/** Creates an app with a guard for all routes and another guard for one route. */
async function start(): Promise<void> {
  const fields = { user: (req: Request) => req.get("x-user") }
  const exports = rateLimitGuard({
    ...{ name: "exports", field: "user", fields, limit: 2, window: "1 minute", clock },
    refundWhen: (_req, status) => status >= 500,
  })
  @Controller()
  class Reports {
    @Get("reports")
    list() {
      ran.push("reports")
      return []
    }
    @Get("exports")
    @UseGuards(exports)
    export() {
      ran.push("exports")
      return []
    }
    @Get("broken")
    @UseGuards(exports)
    fail() {
      throw new Error("The database does not respond.")
    }
  }
  @Module({ controllers: [Reports] })
  class App {}
  app = await NestFactory.create(App, { logger: false })
  app.useGlobalGuards(rateLimitGuard({ name: "all", limit: 5, window: "1 minute", clock }))
  await app.listen(0, "127.0.0.1")
  url = await app.getUrl()
}

beforeEach(async () => {
  clock.set(Date.UTC(2024, 0, 1))
  ran = []
  await start()
})
afterEach(() => app.close())

const get = (path: string, user = "ann") => fetch(`${url}/${path}`, { headers: { "x-user": user } })

describe("the guard for NestJS", () => {
  it("refuses requests through Nest's exception filters, with the exact wait", async () => {
    for (let time = 0; time < 5; time++) {
      const { status, headers } = await get("reports")
      expect([status, headers.get("ratelimit")]).toEqual([
        200,
        expect.stringContaining(`"all";r=${4 - time}`),
      ])
    }
    const refused = await get("reports")
    expect(refused.status).toBe(429)
    expect(refused.headers.get("retry-after")).toBe("61")
    const body = await refused.json()
    expect(body).toEqual({ statusCode: 429, message: "Too many requests", retryAfterMs: 60_001 })
    expect(ran).toHaveLength(5)

    clock.advance(60_000)
    expect((await get("reports")).status).toBe(429)
    clock.advance(1)
    expect((await get("reports")).status).toBe(200)
  })

  it("applies a separate limit to each user of a route", async () => {
    expect((await get("exports")).headers.get("ratelimit-policy")).toBe('"all";q=5;w=60, "exports";q=2;w=60')
    expect((await get("exports")).status).toBe(200)
    expect((await get("exports")).status).toBe(429)
    expect((await get("exports", "bob")).status).toBe(200)
    expect(ran).toEqual(["exports", "exports", "exports"])
  })

  it("refunds units if the handler fails", async () => {
    for (let time = 0; time < 3; time++) expect((await get("broken")).status).toBe(500)
    expect((await get("exports")).headers.get("ratelimit")).toContain('"exports";r=1')
  })
})
