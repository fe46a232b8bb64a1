import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { createLimiter, InvalidOptionError } from "../../packages/core/src/index.ts"
import { redisOverHttp, redisStore } from "../../packages/redis/src/index.ts"
import { freePort } from "../servers/free-port.ts"
import { type RedisFront, startFront, TOKEN } from "../servers/redis-over-http.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"

const CLIENT = { remoteAddress: "192.0.2.7" }
let redis: RedisServer
let front: RedisFront
let made = 0

beforeAll(async () => {
  redis = await startRedis()
  front = await startFront(redis.port)
})
afterAll(async () => {
  await front?.stop()
  await redis?.stop()
})
afterEach(() => {
  front.fault = undefined
})

/** Returns a limiter of 100 requests per day, whose counters are unused. */
function limiterOf(options: object = {}, client = redisOverHttp({ url: front.url, token: TOKEN })) {
  const logged: string[] = []
  const log = ({ code }: { readonly code: string }, message: string): void => {
    logged.push(`${code} ${message}`)
  }
  const store = redisStore({ client, prefix: `${made++}:` })
  const limiter = createLimiter({
    ...{ service: "checkout", limit: 100, window: "1 day", store, storeTimeoutMs: 20_000 },
    logger: { warn: log, error: log },
    ...options,
  })
  front.commands.length = 0
  return { limiter, logged, store }
}

/** Returns the names of the commands about the client's counter. The limiter also reads whether clients are blocked. */
function sent(): (string | undefined)[] {
  return front.commands.filter(([, , , key]) => key?.endsWith(CLIENT.remoteAddress)).map(([name]) => name)
}

describe("redisOverHttp", () => {
  it.each([
    [{}, /url: undefined is not an HTTP URL.*token: undefined is not a token/s],
    [
      { url: "redis://:secret@localhost", token: "t" },
      /url: a string is not an HTTP URL without credentials/,
    ],
    [{ url: "https://user:secret@redis.example", token: "t" }, /url: a string is not an HTTP URL without/],
    [{ url: "https://redis.example", token: "secret\n" }, /token: a string is not a token/],
    [{ url: "https://redis.example", token: "t", retry: 5 }, /retry: is not an option of redisOverHttp/],
  ])("rejects the options %j without showing secrets", (options, message) => {
    const create = () => redisOverHttp(options as never)
    expect(create).toThrow(InvalidOptionError)
    expect(create).toThrow(message)
    expect(create).not.toThrow(/secret/)
  })

  it("creates a client that counts as a connected client does", async () => {
    const { limiter } = limiterOf()
    const decisions = [await limiter.decide(CLIENT), await limiter.decide(CLIENT, { cost: 99 })]
    const refused = await limiter.decide(CLIENT)
    expect([...decisions, refused]).toMatchObject([
      { allowed: true, remaining: 99, degraded: false },
      { allowed: true, remaining: 0 },
      { allowed: false, remaining: 0, degraded: false },
    ])
    // The store has remembered the refusal.
    expect((await limiter.decide(CLIENT)).allowed).toBe(false)
    expect(sent()).toEqual(["EVALSHA", "EVAL", "EVALSHA", "EVALSHA"])
    await limiter.refund(decisions[0] as never)
    expect((await limiter.peek(CLIENT)).remaining).toBe(1)
    await limiter.reset(CLIENT)
    expect((await limiter.peek(CLIENT)).remaining).toBe(100)
  })

  it("creates a client that sends the whole script again only if Redis does not have it", async () => {
    const { limiter } = limiterOf()
    await limiter.decide(CLIENT)
    await redis.command("SCRIPT", "FLUSH")
    front.commands.length = 0
    expect(await limiter.decide(CLIENT)).toMatchObject({ remaining: 98, degraded: false })
    expect(sent()).toEqual(["EVALSHA", "EVAL"])
  })

  it.each(["lost", "half"] as const)(
    "creates a client that never sends a call again whose reply was %s",
    async (fault) => {
      const { limiter, logged } = limiterOf()
      await limiter.decide(CLIENT)
      front.commands.length = 0
      front.fault = fault
      expect(await limiter.decide(CLIENT)).toMatchObject({ allowed: true, degraded: true })
      front.fault = undefined
      expect(sent()).toEqual(["EVALSHA"])
      expect((await limiter.peek(CLIENT)).remaining).toBe(98)
      expect(logged).toEqual([expect.stringMatching(/^SLUICE_DEGRADED Redis at 127\.0\.0\.1:\d+ failed: /)])
    },
  )

  it.each([
    [
      "a page of a proxy",
      502,
      "<h1>Bad NOSCRIPT gateway</h1>",
      /sent an invalid response: HTTP 502, "<h1>Bad/,
    ],
    ["a redirect", 302, "", /sent an invalid response: HTTP 302, ""/],
    ["no result", 200, "{}", /sent an invalid response: HTTP 200, "{}"/],
    ["another result", 200, '{"result":"PONG"}', /Redis sent an invalid reply: PONG/],
    ["too many requests", 429, '{"error":"ERR max requests"}', /failed: ERR max requests \(HTTP 429\)/],
    ["a proxy's error", 502, '{"error":"no NOSCRIPT"}', /failed: no NOSCRIPT \(HTTP 502\)/],
    ["a long error", 400, `{"error":"${"long ".repeat(1000)}"}`, /failed: (long ){40}…\.?\n/],
    ["a page that quotes the token", 500, `${" ".repeat(195)}${TOKEN}`, /HTTP 500, " {195}…"/],
    ["an error that quotes the token", 401, `{"error":"not ${TOKEN}"}`, /failed: not … \(HTTP 401\)/],
  ])("creates a client that reports %s and is not retried", async (_what, status, body, message) => {
    const { limiter, logged } = limiterOf()
    front.fault = { status, body, headers: { Location: "/other" } }
    expect((await limiter.decide(CLIENT)).degraded).toBe(true)
    expect(sent()).toEqual(["EVALSHA"])
    expect(logged[0]).toMatch(message)
  })

  it("creates a client that reports why it could not reach the server", async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    const { limiter, logged } = limiterOf({}, redisOverHttp({ url, token: TOKEN }))
    expect((await limiter.decide(CLIENT)).degraded).toBe(true)
    expect(logged[0]).toMatch(/^SLUICE_DEGRADED Redis at 127\.0\.0\.1:\d+ failed: .*ECONNREFUSED/)
  })

  it("creates a client that does not read an endless response", async () => {
    const { limiter, logged } = limiterOf()
    front.fault = "endless"
    expect((await limiter.decide(CLIENT)).degraded).toBe(true)
    expect(logged[0]).toMatch(/sent an invalid response: HTTP 200, "a{200}…"/)
  })

  it("creates a client that reports a wrong token without showing it", async () => {
    const { limiter, logged } = limiterOf({}, redisOverHttp({ url: front.url, token: "wrong-secret" }))
    expect((await limiter.decide(CLIENT)).degraded).toBe(true)
    expect(logged[0]).toContain("failed: Unauthorized (HTTP 401).")
    expect(logged[0]).not.toContain("secret")
  })

  it("creates a client whose requests do not wait for each other", async () => {
    const { limiter } = limiterOf()
    await limiter.decide(CLIENT)
    front.commands.length = 0
    const decisions = await Promise.all(Array.from({ length: 20 }, () => limiter.decide(CLIENT)))
    expect(new Set(decisions.map(({ remaining }) => remaining)).size).toBe(20)
    expect(sent()).toHaveLength(20)
  })

  it("creates a client whose server is probed by requests that do not wait, without a timer", async () => {
    const { limiter, logged, store } = limiterOf({ storeTimeoutMs: 100 })
    await limiter.decide(CLIENT)
    front.fault = "silent"
    for (let i = 0; i < 5; i++) expect((await limiter.decide(CLIENT)).degraded).toBe(true)
    expect(store.status?.openBreakers).toBe(1)
    const arrived = front.commands.length
    front.fault = undefined
    // Requests right after the last failure start no probe.
    await limiter.decide(CLIENT)
    expect(front.commands).toHaveLength(arrived)
    await until("a request has probed", async () => (await limiter.decide(CLIENT)).degraded === false)
    expect(store.status?.openBreakers).toBe(0)
    expect(logged.filter((line) => line.startsWith("SLUICE_DEGRADED "))).toHaveLength(1)
  })
})

it("redisStore rejects the client itself, and shows how to pass it", () => {
  const client = redisOverHttp({ url: "https://redis.example", token: TOKEN })
  expect(() => redisStore(client as never)).toThrow(
    /the client itself is not an options object.*redisStore\(\{ client/,
  )
})
