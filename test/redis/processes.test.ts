import { afterEach, describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { until } from "../servers/until.ts"
import type { App, Tally } from "./asking-instance.ts"
import { keysWithoutTtl, timeOf, unitsIn } from "./counted.ts"
import { type Instance, killInstances, startClusterApp, startProcess, startThread } from "./instances.ts"
import type { Library } from "./open-client.ts"

// Instances use the packages as built; `pnpm test` and `pnpm check` build them first.

const HOUR = 3_600_000
/** With this window, a test reaches the next window only once a month. */
const MONTH = 30 * 24 * HOUR

const { server } = await redisForTests()
let made = 0
afterEach(killInstances)

function appOf(limit: number, library: Library = "ioredis 6", windowMs = MONTH): App {
  return {
    client: { library, ports: [server.port], isCluster: false },
    prefix: `p${made++}:`,
    limit,
    windowMs,
  }
}

async function startProcesses(app: App, count: number) {
  return Promise.all(Array.from({ length: count }, () => startProcess(app)))
}

function sum(tallies: readonly Tally[], part: keyof Tally): number {
  return tallies.reduce((total, tally) => total + tally[part], 0)
}

function thousand(...costs: number[]): number[] {
  return Array.from({ length: 1_000 }, (_, i) => costs[i % costs.length] ?? 1)
}

describe("three processes with one counter in Redis", { timeout: 300_000 }, () => {
  it("admit exactly 500 units of 3,000 concurrent requests through node-redis", async () => {
    const app = appOf(500, "node-redis 6")
    const processes = await startProcesses(app, 3)
    // Requests of a single unit ensure that all units are taken in the end.
    const tallies = await Promise.all(processes.map((instance) => instance.burst(thousand(7, 1, 5, 2, 3))))
    expect(sum(tallies, "admitted")).toBe(500)
    expect(sum(tallies, "degraded")).toBe(0)
    expect(await unitsIn(server, app.prefix)).toBe(500)
    // Each process exits by itself once it has closed everything that it opened.
    expect(await Promise.all(processes.map((instance) => instance.leave()))).toEqual([0, 0, 0])
  })

  it("count exactly 500 units, and report no more, even if one process is killed under load", async () => {
    const app = appOf(500)
    const processes = await startProcesses(app, 3)
    const [victim, ...others] = processes as [Instance, ...Instance[]]
    // Limit the load of the other instances, so that units remain until the victim dies, however long that takes.
    const before = others.map((instance) => instance.load(150))
    await expect(victim.fall(40)).rejects.toThrow("in the middle")
    const tallies = await Promise.all(before)
    const counted = await unitsIn(server, app.prefix)
    expect(counted).toBeLessThan(500)
    tallies.push(...(await Promise.all(others.map((instance) => instance.load()))))
    expect(await unitsIn(server, app.prefix)).toBe(500)
    // Redis also counts units that the killed instance was granted but could not report.
    const reported = sum(tallies, "admitted") + victim.admitted
    expect(reported).toBeLessThanOrEqual(500)
    expect(reported).toBeGreaterThan(500 - 64)
    expect(sum(tallies, "degraded")).toBe(0)
  })

  it("use exactly the limit while processes start and stop", async () => {
    const app = appOf(3_000)
    const [one, two, three] = (await startProcesses(app, 3)) as [Instance, Instance, Instance]
    // Limit the load, so that units remain until one instance has exited, however long that takes.
    const loads = [one.load(1_000)]
    await until("one alone was admitted some", () => one.admitted >= 500)
    loads.push(two.load(900), three.load(900))
    expect(await loads[0]).toMatchObject({ refused: 0 })
    expect(await one.leave()).toBe(0)
    const tallies = await Promise.all(loads)
    expect(sum(tallies, "refused")).toBe(0)
    tallies.push(...(await Promise.all([two.load(), three.load()])))
    expect(sum(tallies, "admitted")).toBe(3_000)
    expect(await unitsIn(server, app.prefix)).toBe(3_000)
  })
})

describe("one app in several threads or processes", { timeout: 300_000 }, () => {
  it("shares the exact count between worker threads", async () => {
    const app = appOf(500)
    const threads = await Promise.all([startThread(app), startThread(app), startThread(app)])
    const tallies = await Promise.all(threads.map((thread) => thread.burst(thousand(1))))
    expect(sum(tallies, "admitted")).toBe(500)
    expect(sum(tallies, "degraded")).toBe(0)
    expect(await unitsIn(server, app.prefix)).toBe(500)
    expect(await Promise.all(threads.map((thread) => thread.leave()))).toEqual([0, 0, 0])
  })

  it("shares the exact count between the processes of node:cluster", async () => {
    const app = appOf(200)
    const port = await startClusterApp(app)
    const asked = new Map<string, number>()
    let refused = 0
    let left = 600
    const client = async () => {
      while (left-- > 0) {
        // Use a separate connection for each request, because node:cluster assigns each connection to the next
        // process.
        const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } })
        const name = response.headers.get("x-process") ?? ""
        await response.arrayBuffer()
        if (response.status === 200) asked.set(name, (asked.get(name) ?? 0) + 1)
        else if (response.status === 429) refused++
      }
    }
    await Promise.all(Array.from({ length: 30 }, client))
    expect([...asked.values()].reduce((all, some) => all + some, 0)).toBe(200)
    expect(refused).toBe(400)
    expect(asked.size).toBe(3)
    expect(await unitsIn(server, app.prefix)).toBe(200)
  })
})

describe("two processes whose clocks differ by an hour", { timeout: 300_000 }, () => {
  /**
   * Returns the length of a window of at most an hour, of which 10 to 50 % have passed. An hour later is in another
   * window.
   */
  async function window(): Promise<number> {
    const nowMs = await timeOf(server)
    for (let windowMs = HOUR; ; windowMs -= 60_001) {
      const part = (nowMs % windowMs) / windowMs
      if (part > 0.1 && part < 0.5) return windowMs
    }
  }

  it("count exactly together, and return the same release time", async () => {
    const app = appOf(500, "ioredis 6", await window())
    const [punctual, ahead] = await Promise.all([startProcess(app), startProcess(app, HOUR)])
    expect(Math.abs(ahead.startedMs - punctual.startedMs - HOUR)).toBeLessThan(60_000)
    const tallies = await Promise.all([punctual, ahead].map((instance) => instance.burst(thousand(1))))
    expect(sum(tallies, "admitted")).toBe(500)
    // A full window admits a request again one millisecond after its end.
    const releaseMs = Math.ceil((await timeOf(server)) / app.windowMs) * app.windowMs + 1
    for (const instance of [punctual, ahead]) {
      const beforeMs = await timeOf(server)
      const { admitted, retryAfterMs } = await instance.burst([1])
      const afterMs = await timeOf(server)
      expect(admitted).toBe(0)
      const asked = releaseMs - retryAfterMs
      // A cached refusal uses the time of its reply, which is slightly behind and never ahead.
      expect([asked >= beforeMs - 5_000, asked <= afterMs + 1]).toEqual([true, true])
    }
  })
})

it("the processes leave no key without a TTL", async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
})
