import { createLimiter } from "@sluice/core"
import { type Activity, type ActivityOverview, recordActivity } from "@sluice/dashboard"
import { redisActivity, redisOverHttp } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startFront, TOKEN } from "../servers/redis-over-http.ts"
import { startRedis } from "../servers/redis-server.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { total } from "./traffic.ts"

const KEY = "sl2:{activity}"
const { server, client } = await redisForTests()
beforeEach(() => server.command("FLUSHALL"))

const activities: Activity[] = []
afterEach(() => {
  for (const activity of activities.splice(0)) activity.stop()
})

/** Records a limiter that has admitted one request and refused two. */
async function record(shared: Parameters<typeof recordActivity>[1], rules = 1) {
  const limiter = createLimiter({
    service: "shop",
    rules: Array.from({ length: rules }, (_, i) => ({ ...RULE, name: `rule-${i}` })),
  })
  for (let i = 0; i < 3; i++) await limiter.decide({ remoteAddress: "192.0.2.1" })
  const activity = recordActivity(limiter, shared)
  activities.push(activity)
  for (let i = 0; i < 2; i++) await limiter.decide({ remoteAddress: "192.0.2.1" })
  return { limiter, activity }
}
const RULE = { field: "ip", limit: 1, window: "1 hour" } as const

/** Writes texts of processes, which stay for `restMs`. */
async function write(texts: readonly string[], restMs = 9_000): Promise<void> {
  const [seconds] = (await server.command("TIME")) as readonly string[]
  const endMs = Number(seconds) * 1_000 + restMs
  await server.command("HSET", KEY, ...texts.flatMap((text, i) => [`${endMs} other-${i}`, text]))
}

/** Returns the overview of all processes. Asks again if a busy machine has missed the deadline. */
async function overviewOfAll(activity: Activity): Promise<ActivityOverview> {
  let overview: ActivityOverview | undefined
  await until("Redis responds within the deadline", async () => {
    overview = await activity.overviewOfAll()
    return overview.missing?.startsWith("Only this process") !== true
  })
  return overview as ActivityOverview
}

function refusalsIn({ services }: ActivityOverview): readonly number[] {
  return services.flatMap(({ rules }) => rules.map(({ slots }) => total(slots.refused ?? [])))
}

describe("the overview of all processes", () => {
  it("contains the fresh records of this process, and those of others", async () => {
    const { limiter, activity } = await record({ shared: redisActivity({ client }) })
    const other = await record({})
    const shared = { format: 1, isWhole: true, snapshots: other.activity.snapshots() }
    await write([JSON.stringify(shared)])
    await limiter.decide({ remoteAddress: "192.0.2.1" })
    const overview = await overviewOfAll(activity)
    expect(overview.services[0]?.instances).toHaveLength(2)
    expect(refusalsIn(overview)).toEqual([5])
    expect(overview.services[0]?.rules[0]?.refused[0]?.refusals).toBe(5)
    expect(overview.missing).toBeUndefined()
  })

  it("is the local overview without a board", async () => {
    const { activity } = await record({})
    const { atMs: _, ...local } = activity.overview()
    expect(await activity.overviewOfAll()).toMatchObject({
      services: [{ service: local.services[0]?.service }],
    })
  })

  it("ignores data that is not a snapshot, says so, and keeps the snapshots of others", async () => {
    const { activity } = await record({ shared: redisActivity({ client }) })
    const [good] = (await record({})).activity.snapshots()
    const [rule] = good?.rules ?? []
    const [client0] = rule?.refused ?? []
    const wrong: readonly unknown[] = [
      ...[null, 7, "text", [], {}],
      { ...good, service: 7 },
      // The page could not show them.
      { ...good, rules: [{ ...rule, rule: "\ud800" }] },
      { ...good, rules: [{ ...rule, refused: [{ ...client0, untilMs: 8.64e15 }] }] },
      { ...good, atMs: 1e300 },
      { ...good, status: null },
      { ...good, status: { ...good?.status, leases: { held: "many" } } },
      { ...good, rulesStatus: { isStale: false, problems: "none" } },
      { ...good, rules: [{ ...rule, seconds: { refused: [2 ** 33] } }] },
      { ...good, rules: [{ ...rule, seconds: { refused: Array(301).fill(1) } }] },
      { ...good, rules: [{ ...rule, refused: [{ ...client0, key: { toString: 1 } }] }] },
      { ...good, rules: [{ ...rule, refused: Array(257).fill(client0) }] },
      { ...good, refusals: [{ text: "?" }] },
    ]
    const texts = [
      ...[
        "",
        "not JSON",
        "null",
        "\u0000",
        '{"format":2,"isWhole":true,"snapshots":[]}',
        "[".repeat(100_000),
      ],
      ...wrong.map((each) => JSON.stringify({ format: 1, isWhole: true, snapshots: [each] })),
      JSON.stringify({ format: 1, isWhole: true, snapshots: [{ ...good, atMs: 0 }] }).replace(
        '"atMs":0',
        '"atMs":1e999',
      ),
    ]
    // Neither may fill the estimate of refused clients beyond what a register can contain.
    const registers = Buffer.alloc(1_024, 255).toString("base64")
    const full = { ...good, rules: [{ ...rule, registers }] }
    const right = [
      JSON.stringify({ format: 1, isWhole: false, snapshots: [good] }),
      JSON.stringify({ format: 1, isWhole: true, snapshots: [full] }),
    ]
    await write([...texts, ...right])
    const overview = await overviewOfAll(activity)
    expect(refusalsIn(overview)).toEqual([6])
    expect(overview.services[0]?.rules[0]?.refusedClients).toBe(1)
    expect(overview.missing).toBe(
      "A process shares what this version cannot read. A process has too many rules, so it shares only those that refuse most.",
    )
  })

  it("names the reason if another program uses the key", async () => {
    await server.command("SET", KEY, "text")
    const { activity } = await record({ shared: redisActivity({ client }) })
    const overview = await activity.overviewOfAll()
    expect(overview.missing).toMatch(/^Only this process is included\. Redis at .* failed: .*WRONGTYPE/)
    expect(refusalsIn(overview)).toEqual([2])
  })

  it("is complete again after an outage of Redis, which changes no decision", async () => {
    const own = await startRedis()
    const ioredis = new Redis(own.port, { retryStrategy: () => 20 })
    ioredis.on("error", () => undefined)
    onTestFinished(async () => {
      ioredis.disconnect()
      await own.stop()
    })
    const { limiter, activity } = await record({ shared: redisActivity({ client: ioredis }) })
    expect((await activity.overviewOfAll()).missing).toBeUndefined()
    await own.kill()
    let overview = await activity.overviewOfAll()
    await until("the outage is noticed", async () => {
      overview = await activity.overviewOfAll()
      return overview.missing !== undefined
    })
    expect(overview.missing).toMatch(
      `Only this process is included. Redis at localhost:${own.port} did not respond in time, because its client has no connection.`,
    )
    expect(refusalsIn(overview)).toEqual([2])
    expect((await limiter.decide({ remoteAddress: "192.0.2.1" })).degraded).toBe(false)
    await own.restart()
    await until("Redis is back", async () => (await activity.overviewOfAll()).missing === undefined)
  })

  it("waits at most for a deadline, and many viewers cause no second call, while Redis does not respond", async () => {
    const proxy = await startProxy(server)
    const ioredis = new Redis(proxy.port)
    onTestFinished(async () => {
      ioredis.disconnect()
      await proxy.close()
    })
    const { activity } = await record({ shared: redisActivity({ client: ioredis }) })
    const board = redisActivity({ client: ioredis })
    expect((await board.exchange("p", undefined, false)).isWatched).toBe(false)
    proxy.pause()
    const startMs = performance.now()
    const held = expect(board.exchange("p", "text", false)).rejects.toThrow("did not respond in time")
    const late = await Promise.all(Array.from({ length: 50 }, () => activity.overviewOfAll()))
    await held
    // Another text would wait in the client's memory.
    await expect(board.exchange("p", "another", false)).rejects.toThrow("did not respond in time")
    expect(performance.now() - startMs).toBeLessThan(5_000)
    expect(new Set(late.map(({ missing }) => missing))).toEqual(
      new Set([`Only this process is included. Redis at localhost:${proxy.port} did not respond in time.`]),
    )
    await server.command("CONFIG", "RESETSTAT")
    proxy.resume()
    await until("the calls have arrived", async () => (await board.exchange("p", undefined, false)).isWatched)
    expect(String(await server.command("INFO", "commandstats"))).toMatch(/cmdstat_hset:calls=2,/)
  })
})

describe("viewers", () => {
  it("share the call of a viewer in the past second", async () => {
    const { activity } = await record({ shared: redisActivity({ client }) })
    await activity.overviewOfAll()
    await server.command("CONFIG", "RESETSTAT")
    for (let i = 0; i < 10; i++) await Promise.all([activity.overviewOfAll(), activity.overviewOfAll()])
    expect(String(await server.command("INFO", "commandstats"))).not.toMatch(
      /cmdstat_evalsha:calls=([2-9]|1\d)/,
    )
  })

  it("wait for a call of the process itself, so that no board gets two calls at a time", async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    let [calls, inFlight, most] = [0, 0, 0]
    const exchange = async () => {
      calls++
      most = Math.max(most, ++inFlight)
      await new Promise((resolve) => setTimeout(resolve, 50))
      inFlight--
      return { isWatched: true, isFull: false, texts: [] }
    }
    const { activity } = await record({ shared: { exchange } })
    // The process asks after 3 s.
    await vi.advanceTimersByTimeAsync(2_980)
    const read = activity.overviewOfAll()
    await vi.advanceTimersByTimeAsync(200)
    await read
    expect(calls).toBeGreaterThan(1)
    expect(most).toBe(1)
  })
})

describe("a board in Redis", () => {
  it("keeps at most 200 texts, and then refuses those of further processes", async () => {
    const board = redisActivity({ client, prefix: "app:" })
    for (let i = 0; i < 200; i++) expect((await board.exchange(`${i}`, "text", false)).isFull).toBe(false)
    expect((await board.exchange("200", "text", false)).isFull).toBe(true)
    expect((await board.exchange("7", "new", false)).isFull).toBe(false)
    const { isFull, texts } = await board.exchange("200", undefined, true)
    expect([isFull, texts.length, texts.filter((text) => text === "new")]).toEqual([true, 200, ["new"]])
    expect(await server.command("PTTL", `app:${KEY}`)).toBeGreaterThan(9_000)
  })

  it("keeps one text of a process, and returns those of others only to a process that watches", async () => {
    const board = redisActivity({ client })
    const none = { isWatched: false, isFull: false, texts: [] }
    for (const text of ["old", "new"]) expect(await board.exchange("one", text, false)).toEqual(none)
    expect(await board.exchange("two", "two's", true)).toEqual({ ...none, texts: ["new"] })
    expect(await board.exchange("one", undefined, true)).toEqual({
      ...none,
      isWatched: true,
      texts: ["two's"],
    })
    expect(await board.exchange("three", undefined, false)).toEqual({ ...none, isWatched: true })
    // The texts of two processes, and that somebody watches.
    expect(await server.command("HLEN", KEY)).toBe(3)
  })

  it("removes texts whose end has passed or is too far away, as after a change of the clock", async () => {
    await write(["old"], 0)
    await write(["text"], 20_000)
    await server.command("HSET", KEY, "not a time", "text")
    expect((await redisActivity({ client }).exchange("reader", undefined, false)).isFull).toBe(false)
    expect(await server.command("EXISTS", KEY)).toBe(0)
  })

  it("returns at most 200 texts and 8 MB, although another program has written more", async () => {
    const board = redisActivity({ client })
    await write(Array(210).fill("text"))
    expect((await board.exchange("reader", undefined, true)).texts).toHaveLength(200)
    await server.command("DEL", KEY)
    await write(Array(40).fill("x".repeat(262_144)))
    expect((await board.exchange("reader", undefined, true)).texts).toHaveLength(32)
  })

  it("keeps at most 8 MB, and no text above 256 kB", async () => {
    const board = redisActivity({ client })
    await board.exchange("large", "x".repeat(262_145), false)
    expect((await board.exchange("reader", undefined, true)).texts).toEqual([])
    for (let i = 0; i < 32; i++) await board.exchange(`${i}`, "x".repeat(262_144), false)
    expect((await board.exchange("32", "x", false)).isFull).toBe(true)
    expect((await board.exchange("reader", undefined, true)).texts).toHaveLength(32)
  })

  it("also works over HTTP", async () => {
    const front = await startFront(server.port)
    onTestFinished(() => front.stop())
    const board = redisActivity({ client: redisOverHttp({ url: front.url, token: TOKEN }) })
    await board.exchange("one", "text", false)
    expect(await board.exchange("two", undefined, true)).toEqual({
      ...{ isWatched: false, isFull: false, texts: ["text"] },
    })
  })
})
