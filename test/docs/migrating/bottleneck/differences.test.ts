import { setTimeout as sleep } from "node:timers/promises"
import { createLimiter, type Limiter, type LimiterOptions, type RequestFacts } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import Bottleneck from "bottleneck"
import pLimit from "p-limit"
import { Semaphore } from "redis-semaphore"
import { describe, expect, it } from "vitest"
import { until } from "../../../servers/until.ts"
import { afterwards } from "../pairs.ts"
import { emptyRedis } from "../redis.ts"
import { bottleneckOptions, HOLD_MS, SEMAPHORE, sluiceOptions } from "./one-permit.ts"
import { start } from "./two-processes.ts"

const HOLDING = new URL("./holding-process.ts", import.meta.url)
const { server, client } = await emptyRedis()

function limiterOf(options: LimiterOptions<RequestFacts>): Limiter {
  const limiter = createLimiter(options)
  afterwards(() => limiter.close())
  return limiter
}

/** Kills a process that holds the only permit. Resolves to the time from then until `take` has taken the permit. */
async function freeAfterKill(library: string, take: () => Promise<unknown>): Promise<number> {
  const { child, ended } = await start(HOLDING, library, `${server.port}`)
  const taking = take()
  const killedMs = performance.now()
  child.kill("SIGKILL")
  await expect(ended).rejects.toThrow()
  await taking
  return performance.now() - killedMs
}

describe("a process that is killed while it holds the only permit", { timeout: 60_000 }, () => {
  it("keeps the permit for at most `hold` in Sluice", async () => {
    const store = redisStore({ client })
    const limiter = limiterOf({ ...sluiceOptions, store })
    const waitedMs = await freeAfterKill("sluice", () => limiter.acquire({}))
    // The permit was taken shortly before, and ends between half of `hold` and `hold` after that.
    expect(waitedMs).toBeGreaterThan(100)
    expect(waitedMs).toBeLessThan(HOLD_MS + 1_000)
  })

  it("keeps the permit for at most `lockTimeout` in redis-semaphore", async () => {
    const semaphore = new Semaphore(client, ...SEMAPHORE)
    const waitedMs = await freeAfterKill("redis-semaphore", () => semaphore.acquire())
    await semaphore.release()
    expect(waitedMs).toBeGreaterThan(100)
    expect(waitedMs).toBeLessThan(HOLD_MS + 1_000)
  })

  it("keeps the permit in Bottleneck until the job's `expiration`, or forever without one", async () => {
    const old = new Bottleneck(bottleneckOptions(server.port))
    afterwards(() => old.disconnect())
    const { child } = await start(HOLDING, "bottleneck", `${server.port}`)
    child.kill("SIGKILL")
    await sleep(2 * HOLD_MS)
    expect(await old.running()).toBe(1)
    expect(await old.check()).toBe(false)
    await server.command("FLUSHALL")
    const other = new Bottleneck(bottleneckOptions(server.port))
    afterwards(() => other.disconnect())
    const waitedMs = await freeAfterKill("bottleneck, expiration", () =>
      other.schedule(async () => undefined),
    )
    expect(waitedMs).toBeLessThan(HOLD_MS + 1_000)
  })
})

describe("a job that a full limit of concurrency refuses", () => {
  it("has used up a unit of a chained Bottleneck's reservoir, but takes nothing in Sluice", async () => {
    const full = new Bottleneck({ maxConcurrent: 1, highWater: 0, strategy: Bottleneck.strategy.OVERFLOW })
    const rate = new Bottleneck({ reservoir: 5 })
    rate.chain(full)
    const end = new AbortController()
    const running = full
      .schedule(() => sleep(60_000, undefined, { signal: end.signal }))
      .catch(() => undefined)
    await until("a job runs", async () => (await full.running()) === 1)
    await expect(rate.schedule(async () => undefined)).rejects.toThrow(/dropped/)
    expect(await rate.currentReservoir()).toBe(4)
    end.abort()
    await running

    const limiter = limiterOf({
      rules: [
        { name: "rate", field: "service", limit: 5, window: "1 hour" },
        { name: "one", field: "service", concurrent: 1 },
      ],
    })
    await limiter.acquire({})
    await expect(limiter.run({}, () => undefined, { maxWaitMs: 0 })).rejects.toThrow()
    expect((await limiter.peek({}, { rules: ["rate"] })).remaining).toBe(4)
  })
})

describe("ten parallel calls of 30 tokens each, under a limit of 100 tokens", () => {
  const CALLS = Array.from({ length: 10 }, (_, number) => number)

  it("overspend the tokens with p-limit, because each call checks the count before others have added theirs", async () => {
    const limit = pLimit(5)
    let spent = 0
    const call = async () => {
      if (spent >= 100) return
      await sleep(5)
      spent += 30
    }
    await Promise.all(CALLS.map(() => limit(call)))
    expect(spent).toBeGreaterThan(120)
  })

  it("do not overspend the tokens with a `weight` in Bottleneck, or with `units` in Sluice", async () => {
    const old = new Bottleneck({ reservoir: 100 })
    let spent = 0
    const call = async () => {
      await sleep(5)
      spent += 30
    }
    const waiting = CALLS.map(() => old.schedule({ weight: 30 }, call).catch(() => undefined))
    await until("three calls have ended", () => spent >= 90)
    await old.stop({ dropWaitingJobs: true })
    await Promise.all(waiting)
    expect(spent).toBe(90)

    const limiter = limiterOf({
      units: { tokens: 30 },
      rules: [
        { name: "tokens", field: "service", limit: 100, window: "1 hour", counts: "tokens" },
        { name: "five", field: "service", concurrent: 5 },
      ],
    })
    spent = 0
    const runs = CALLS.map(() => limiter.run({}, call, { maxWaitMs: 100 }).catch(() => undefined))
    await Promise.all(runs)
    expect(spent).toBe(90)
  })
})
