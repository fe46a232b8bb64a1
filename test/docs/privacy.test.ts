import { createLimiter, type Limiter } from "@sluice/core"
import { recordDecisions } from "@sluice/recording"
import { redisStore } from "@sluice/redis"
import { beforeEach, describe, expect, it, onTestFinished } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import type { Block } from "./blocks.ts"
import { blocksTestedBy } from "./shown.ts"
import { runTypeScript } from "./typescript/run.ts"

const DOCUMENT = "docs/production/privacy.md"
const [hashing, deleting] = blocksTestedBy("test/docs/privacy.test.ts", DOCUMENT, 2) as [Block, Block]

const { client } = await redisForTests()
beforeEach(() => client.flushall())

const ADDRESS = "203.0.113.10"
const REQUEST = { remoteAddress: ADDRESS }
const WINDOW_MS = 60_000

/** Creates a limiter in Redis with a long timeout. */
function limiterBy(field: string): Limiter<object> {
  const limiter = createLimiter({
    ...{ service: "shop", field, limit: 100, window: WINDOW_MS, store: redisStore({ client }) },
    storeTimeoutMs: 20_000,
  })
  onTestFinished(() => limiter.close())
  return limiter
}

describe("Redis, as the page on privacy says,", () => {
  it("stores the address in a key that expires within two windows", async () => {
    await limiterBy("ip").decide(REQUEST)
    const [key = "", ...others] = await client.keys("*")
    expect([key.slice(-ADDRESS.length), others]).toEqual([ADDRESS, []])
    const ttlMs = await client.pttl(key)
    expect(ttlMs).toBeGreaterThan(0)
    expect(ttlMs).toBeLessThanOrEqual(2 * WINDOW_MS)
  })

  it.each([
    ["unchanged if it has 64 printable characters", "a".repeat(64), true],
    ["as a hash if it has 65 characters", "a".repeat(65), false],
    ["as a hash if it contains a character that is not ASCII", "zoë", false],
  ])("stores a value %s", async (_how, value, isReadable) => {
    await limiterBy("header:x-user").decide({ headers: { "x-user": value } })
    const [key = ""] = await client.keys("*")
    expect(key.endsWith(value)).toBe(isReadable)
  })

  it("does not store the value of the Authorization header", async () => {
    await limiterBy("header:authorization").decide({ headers: { authorization: "Bearer abc" } })
    const [key = ""] = await client.keys("*")
    expect(key).not.toMatch(/Bearer|abc/)
  })
})

describe("with hashKeys, as on the page on privacy,", () => {
  async function hashed(): Promise<Limiter<object>> {
    const { limiter } = await runTypeScript(hashing, { client })
    onTestFinished(() => (limiter as Limiter<object>).close())
    return limiter as Limiter<object>
  }

  it("neither Redis, nor an event, nor a record contains the address", async () => {
    const limiter = await hashed()
    const seen: unknown[] = []
    limiter.on("decision", (_decision, _request, { counters }) => seen.push(counters))
    const recorder = recordDecisions(limiter, (records) => void seen.push(records))
    await limiter.decide(REQUEST)
    await recorder.close()
    seen.push(await client.keys("*"))
    expect(seen).toHaveLength(3)
    expect(JSON.stringify(seen)).not.toContain(ADDRESS)
  })

  it("the counters and the block of a person can be deleted", async () => {
    const limiter = await hashed()
    await limiter.decide(REQUEST)
    await limiter.block(REQUEST, { for: "1 hour" })
    await runTypeScript(deleting, { limiter })
    expect(await limiter.peek(REQUEST)).toMatchObject({ allowed: true, remaining: 100 })
  })
})
