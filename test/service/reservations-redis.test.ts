import { setTimeout as sleep } from "node:timers/promises"
import type { Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { post } from "./post.ts"
import { FORWARD } from "./questions.ts"
import { type Started, startService } from "./started.ts"

const RULES = `
service_id: chat
rules:
  - { name: tpm, field: user, limit: 1000, window: 1 week, counts: tokens }
  - { name: five, field: user, concurrent: 5, hold: 2 seconds }
---
service_id: waits
rules: { name: one, field: user, limit: 1, window: 1 week, throttle: { kind: queue, max_wait_ms: 2147483647 } }
`

describe("reservations of two instances on one Redis", () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  /** Starts an instance. `around` may change its store. */
  async function start(around = (store: Store): Store => store): Promise<Started> {
    const client = new Redis(server.port, server.host, { retryStrategy: () => 50 })
    client.on("error", () => undefined)
    await client.ping()
    const store = around(redisStore({ client, timeoutMs: 20_000 }))
    const logger = { warn() {}, error() {} }
    const started = await startService(RULES, { shared: { store, storeTimeoutMs: 20_000, logger } })
    let isEnded = false
    const end = async (timeoutMs: number): Promise<boolean> => {
      isEnded = true
      return started.end(timeoutMs)
    }
    onTestFinished(async () => {
      if (!isEnded) await started.end(0)
      client.disconnect()
      expect(started.faults).toEqual([])
    })
    return { ...started, end }
  }

  const asked = (user: string) => ({ service: "chat", request: { user }, units: { tokens: 100 } })
  const reserve = async (started: Started, user: string): Promise<string> =>
    (await post(started, FORWARD, { ...asked(user), reserve: true })).body.reservation as string
  const settle = async (started: Started, reservation: string, more = {}) => {
    const { body } = await post(started, "/sluice.v1.RateLimiter/Settle", {
      settlements: [{ reservation, ...more }],
    })
    return (body.results as { settled: boolean; error?: { code: number; message: string } }[])[0]
  }
  const left = async (started: Started, user: string) => {
    const shown = ["tpm", "five"].map(async (rule) => {
      const named = { service: "chat", rule, client: [user] }
      return (await post(started, "/sluice.v1.RateLimiter/ShowClient", named)).body.remaining
    })
    return (await Promise.all(shown)).join(" ")
  }

  it("are settled once, by whichever instance is first", async () => {
    const [one, other] = [await start(), await start()]
    for (let round = 0; round < 10; round++) {
      const user = `once ${round}`
      const text = await reserve(one, user)
      const tries = [one, other, one, other, one, other].map((each) =>
        settle(each, text, { used: { tokens: 30 } }),
      )
      const settled = (await Promise.all(tries)).map((each) => each?.settled)
      expect(settled.sort()).toEqual([false, false, false, false, false, true])
      expect(await left(other, user)).toBe("970 5")
    }
  })

  it("stay charged, and free their permits, if an instance dies between the mark and the refund", async () => {
    let isReached = false
    const dying = await start((store) => ({
      ...{ isShared: true, close: () => store.close() },
      ...{ take: store.take.bind(store), read: store.read.bind(store), reset: store.reset.bind(store) },
      refund(): Promise<void> {
        isReached = true
        return new Promise(() => {})
      },
    }))
    const other = await start()
    const text = await reserve(dying, "dies")
    void settle(dying, text, { used: { tokens: 30 } }).catch(() => undefined)
    await until("the refund begins", () => isReached)
    await dying.end(0)
    expect(await settle(other, text, { used: { tokens: 30 } })).toEqual({ settled: false })
    await until("the permit has ended", async () => (await left(other, "dies")) === "900 5")
  })

  it("say whether to settle again if Redis does not respond", async () => {
    const client = new Redis(server.port, server.host, { retryStrategy: () => 50 })
    const store = redisStore({ client, timeoutMs: 100 })
    const logger = { warn() {}, error() {} }
    const impatient = await startService(RULES, { shared: { store, storeTimeoutMs: 100, logger } })
    const text = await reserve(impatient, "slow")
    server.freeze()
    const failed = await settle(impatient, text)
    server.thaw()
    expect(failed?.settled).toBe(false)
    expect(failed?.error).toMatchObject({ code: 14, message: expect.stringMatching(/settle/) })
    await impatient.stop()
    client.disconnect()
  })

  it.each([
    ["alone", FORWARD, (user: string) => ({ ...asked(user), reserve: true })],
    [
      "in a batch, of which another request waits",
      `${FORWARD}s`,
      (user: string) => ({
        requests: [
          { ...asked(user), reserve: true },
          ...Array(2).fill({ service: "waits", request: { user } }),
        ],
      }),
    ],
  ])("take nothing if the caller hangs up before the response: %s", async (how, path, bodyOf) => {
    const started = await start()
    await post(started, FORWARD, asked("warm"))
    if (how === "alone") server.freeze()
    const ended = await fetch(started.http + path, {
      ...{
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(bodyOf(how)),
      },
      signal: AbortSignal.timeout(300),
    }).catch((error: Error) => error.name)
    expect(ended).toBe("TimeoutError")
    await sleep(200)
    server.thaw()
    // Long before the permit ends by itself.
    await until("everything is back", async () => (await left(started, how)) === "1000 5", 900)
  })
})
