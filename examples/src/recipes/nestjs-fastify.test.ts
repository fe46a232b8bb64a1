import "reflect-metadata"
import { Controller, Get, Logger, Module } from "@nestjs/common"
import { type NestFastifyApplication, RouteConfig } from "@nestjs/platform-fastify"
import { manualClock } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { createApp } from "./nestjs-fastify.ts"

const clock = manualClock()
let ran: number
let app: NestFastifyApplication
let url: string

@Controller()
class Reports {
  @Get("reports")
  list() {
    ran++
    return []
  }
  @Get("exports")
  @RouteConfig({ rateLimit: { name: "exports", limit: 2, window: "1 minute" } })
  export() {
    ran++
    return []
  }
  @Get("health")
  @RouteConfig({ rateLimit: false })
  health() {
    return "well"
  }
}
@Module({ controllers: [Reports] })
class App {}

beforeEach(async () => {
  Logger.overrideLogger(false)
  clock.set(Date.UTC(2024, 0, 1))
  ran = 0
  app = await createApp(App, { clock })
  await app.listen(0, "127.0.0.1")
  url = await app.getUrl()
})
afterEach(() => app.close())

const get = (path: string) => fetch(`${url}/${path}`)

describe("the plugin in NestJS on Fastify", () => {
  it("limits all routes, and sends the exact wait in Retry-After", async () => {
    for (let time = 0; time < 100; time++) expect((await get("reports")).status).toBe(200)
    const refused = await get("reports")
    expect(refused.status).toBe(429)
    expect(refused.headers.get("retry-after")).toBe("61")
    expect(await refused.json()).toMatchObject({ status: 429, "violated-policies": ["ip-1m"] })
    expect(ran).toBe(100)
    expect((await get("nowhere")).status).toBe(429)
    clock.advance(60_001)
    expect((await get("reports")).status).toBe(200)
  })

  it("applies a separate limit to one route, and no limit to another", async () => {
    for (let time = 0; time < 2; time++) expect((await get("exports")).status).toBe(200)
    expect((await get("exports")).status).toBe(429)
    expect((await get("reports")).status).toBe(200)
    for (let time = 0; time < 9; time++) expect((await get("health")).status).toBe(200)
  })
})
