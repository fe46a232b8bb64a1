import { setTimeout as sleep } from "node:timers/promises"
import { rateLimit } from "@sluice/express"
import type { mirroredStore } from "@sluice/scale"
import express from "express"
import type { Redis } from "ioredis"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { listen } from "../contracts/adapter/listen.ts"
import type { RunningApp } from "../contracts/adapter/plan.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import type { Block } from "./blocks.ts"
import { blocksTestedBy } from "./shown.ts"
import { runTypeScript } from "./typescript/run.ts"

const [file] = blocksTestedBy("test/docs/regions.test.ts", "docs/scale/data-centers.md", 1) as [Block]
const REGIONS = ["eu", "us", "ap"]
/** The limit per minute in the file. */
const LIMIT = 100

interface Region {
  readonly app: RunningApp
  stop(): Promise<void>
}

/** The earlier listeners of the process, because the file adds its own. */
const LISTENERS = process.listeners("SIGTERM")

let servers: readonly RedisServer[]
let regions: readonly Region[]

beforeEach(async () => {
  // The file logs the errors that its clients report.
  vi.spyOn(console, "error").mockReturnValue(undefined)
  servers = await Promise.all(REGIONS.map(() => startRedis()))
  for (const [at, region] of REGIONS.entries()) {
    const { host, port } = servers[at] as RedisServer
    vi.stubEnv(`REDIS_URL_${region.toUpperCase()}`, `redis://${host}:${port}`)
  }
  const running: Region[] = []
  // Each process reads its own environment, so start the processes one after the other.
  for (const region of REGIONS) running.push(await startRegion(region))
  regions = running
})
afterEach(async () => {
  for (const { stop } of regions) await stop()
  for (const server of servers) await server.stop()
  for (const listener of process.listeners("SIGTERM"))
    if (!LISTENERS.includes(listener)) process.off("SIGTERM", listener)
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

/** Runs the file as the process of a region, and serves its app. */
async function startRegion(region: string): Promise<Region> {
  vi.stubEnv("DATA_CENTER", region)
  const app = express().use((req, _res, next) => {
    Object.assign(req, { user: { id: "one customer" } })
    next()
  })
  const made = await runTypeScript(file, { app, rateLimit })
  app.get("/", (_req, res) => void res.send("ok"))
  const served = await listen(app)
  const { limits, store, clients } = made as {
    limits: ReturnType<typeof rateLimit>
    store: ReturnType<typeof mirroredStore>
    clients: readonly Redis[]
  }
  return {
    app: served,
    async stop() {
      await served.close()
      await limits.limiter.close()
      await store.close()
      for (const client of clients) client.disconnect()
    },
  }
}

/** Sends a request to a region. Resolves to the response's status. */
async function ask(at: number): Promise<number> {
  const url = (regions[at % REGIONS.length] as Region).app.url
  const { status } = await fetch(url)
  return status
}

const admitted = (statuses: readonly number[]): number => statuses.filter((status) => status === 200).length

describe("the file for three regions", () => {
  it("counts a client of one region exactly", async () => {
    const statuses = []
    for (let nth = 0; nth < LIMIT + 20; nth++) statuses.push(await ask(0))
    expect(admitted(statuses)).toBe(LIMIT)
  })

  it("admits only a few requests above the limit from a client that uses all regions", async () => {
    const statuses: number[] = []
    const sent: Promise<unknown>[] = []
    for (let nth = 0; nth < 2 * LIMIT; nth++) {
      sent.push(ask(nth).then((status) => statuses.push(status)))
      await sleep(20)
    }
    await Promise.all(sent)
    expect(admitted(statuses)).toBeGreaterThanOrEqual(LIMIT)
    // The page states 105. A busy machine receives the counts of the other regions later.
    expect(admitted(statuses)).toBeLessThanOrEqual(LIMIT + 30)
  })

  it("admits at most the limit in each region in a burst, and then refuses everywhere", async () => {
    const statuses = await Promise.all(Array.from({ length: 3 * (LIMIT + 10) }, (_, nth) => ask(nth)))
    expect(admitted(statuses)).toBeGreaterThanOrEqual(LIMIT)
    expect(admitted(statuses)).toBeLessThanOrEqual(3 * LIMIT)
    await until("every region refuses", async () => {
      const now = await Promise.all(REGIONS.map((_, at) => ask(at)))
      return now.every((status) => status === 429)
    })
  })

  it("starts, and admits a request, while the Redis of the other regions is unavailable", async () => {
    await regions[0]?.stop()
    for (const far of servers.slice(1)) await far.kill()
    const alone = await startRegion("eu")
    regions = [alone, ...regions.slice(1)]
    expect(await ask(0)).toBe(200)
  })

  it("starts while the Redis of its own region is unavailable", async () => {
    await regions[0]?.stop()
    await servers[0]?.kill()
    const alone = await startRegion("eu")
    regions = [alone, ...regions.slice(1)]
    expect(alone.app.url).toMatch(/^http/)
  })

  it.each(["DATA_CENTER", "REDIS_URL_US"])("does not start without the variable %s", async (name) => {
    vi.stubEnv("DATA_CENTER", "eu")
    vi.stubEnv(name, undefined)
    await expect(runTypeScript(file, { app: express(), rateLimit })).rejects.toThrow(`Set ${name}.`)
  })
})
