import { setTimeout as sleep } from "node:timers/promises"
import { ClosedError, createLimiter, type Limiter, RateLimitExceededError, type Rule } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { describe, expect, it } from "vitest"
import { findRedis } from "../../../servers/redis-binary.ts"
import { until } from "../../../servers/until.ts"
import { afterwards } from "../pairs.ts"
import { emptyRedis } from "../redis.ts"
import type { Job, Ran } from "./jobs-process.ts"
import { mostAtOnce, twoProcesses } from "./two-processes.ts"

// The tests run on the Redis that `findRedis` finds, which is Redis 7 in CI; SLUICE_REDIS_SERVER chooses another one.
const { version } = await findRedis()
const { server, client } = await emptyRedis()
const both = await twoProcesses(server.port)

const all: Pick<Rule<Job>, "field"> = { field: "service" }
const pace = { ...all, algorithm: "leaky-bucket", burst: 1 } as const
const jobsOf = (count: number, job: Partial<Job> = {}): Job[] =>
  Array.from({ length: count }, (_, number) => ({ name: `${number}`, lastsMs: 0, ...job }))
const names = (ran: readonly Ran[]): string[] => ran.map(({ name }) => name)

/** Creates a limiter in this process, with the same Redis. It is closed when the test ends. */
function limiterOf(...rules: readonly Rule<Job>[]): Limiter<Job> {
  const store = redisStore({ client })
  const limiter = createLimiter<Job>({
    ...{ service: "jobs", rules, store, storeTimeoutMs: 20_000 },
    fields: { user: (job) => job.user },
  })
  afterwards(async () => {
    await limiter.close()
    await store.close()
  })
  return limiter
}
const job: Job = { name: "here", lastsMs: 0 }
const ticks = (signal?: AbortSignal) => sleep(600_000, undefined, { signal })

describe(`the README examples of Bottleneck, in two processes on Redis ${version}`, {
  timeout: 60_000,
}, () => {
  it("never run more jobs than `maxConcurrent` in both processes together, each in order", async () => {
    const rules = [{ ...all, concurrent: 3 }]
    const ran = await both.run({ service: "jobs", rules, jobs: jobsOf(8, { lastsMs: 150 }) })
    expect(mostAtOnce(ran.flat())).toBe(3)
    for (const each of ran) expect(each).toHaveLength(8)
    // With one job at a time, each process runs its jobs in order.
    const alone = [{ ...all, name: "alone", concurrent: 1 }]
    const ordered = await both.run({ service: "alone", rules: alone, jobs: jobsOf(5, { lastsMs: 20 }) })
    expect(mostAtOnce(ordered.flat())).toBe(1)
    for (const each of ordered) expect(names(each)).toEqual(["0", "1", "2", "3", "4"])
  })

  it("start jobs `minTime` apart, over both processes", async () => {
    const rules = [{ ...pace, limit: 10, window: "1 second" } as const]
    const ran = (await both.run({ service: "jobs", rules, jobs: jobsOf(5) })).flat()
    const starts = ran.map(({ startMs }) => startMs).sort((one, other) => one - other)
    expect(starts).toHaveLength(10)
    // A job may start late, on a busy machine. So the first of several jobs may start late, and the last one may not.
    const LATE_MS = 250
    for (const [i, first] of starts.entries()) {
      for (const [k, later] of starts.slice(i).entries())
        expect(later - first).toBeGreaterThan(k * 100 - LATE_MS)
    }
  })

  it("keep `maxConcurrent` and `minTime` together", async () => {
    const rules = [{ ...all, concurrent: 2 }, { ...pace, limit: 20, window: "1 second" } as const]
    const ran = (await both.run({ service: "jobs", rules, jobs: jobsOf(4, { lastsMs: 120 }) })).flat()
    expect(ran).toHaveLength(8)
    expect(mostAtOnce(ran)).toBeLessThanOrEqual(2)
  })

  it("start as many jobs in an interval as the `reservoir` contains", async () => {
    const rules = [{ ...all, limit: 4, window: "1 second", algorithm: "fixed-window" } as const]
    const ran = (await both.run({ service: "jobs", rules, jobs: jobsOf(5) })).flat()
    expect(ran).toHaveLength(10)
    expect(mostInWindow(ran)).toBe(4)
  })

  it("let a job use as much of the `reservoir` as its `weight`", async () => {
    const rules = [{ ...all, limit: 10, window: "1 second", algorithm: "fixed-window" } as const]
    const jobs = jobsOf(3, { options: { cost: 3 } })
    const ran = (await both.run({ service: "jobs", rules, jobs })).flat()
    expect(ran).toHaveLength(6)
    expect(mostInWindow(ran)).toBe(3)
  })

  it("increase the `reservoir` by an amount in each interval, up to a maximum", async () => {
    const rules = [
      {
        ...all,
        limit: 2,
        window: "1 second",
        burst: 6,
        algorithm: "token-bucket",
        refill: "periodic",
      } as const,
    ]
    const startMs = Date.now()
    const ran = (await both.run({ service: "jobs", rules, jobs: jobsOf(5) })).flat()
    expect(ran).toHaveLength(10)
    const starts = ran.map((each) => each.startMs).sort((one, other) => one - other)
    // Six jobs start immediately, and the last two of the others wait for the second refill.
    expect((starts[9] ?? 0) - (starts[0] ?? 0)).toBeGreaterThan(900)
    expect(Date.now() - startMs).toBeLessThan(30_000)
  })

  it("count a job as several permits if the rule has a `cost`, as a `weight` does", async () => {
    const rules = [{ ...all, concurrent: 4, cost: 2 }]
    const ran = (await both.run({ service: "jobs", rules, jobs: jobsOf(4, { lastsMs: 150 }) })).flat()
    expect(ran).toHaveLength(8)
    expect(mostAtOnce(ran)).toBe(2)
  })

  it("run jobs by `priority` within each process", async () => {
    const rules = [{ ...all, concurrent: 1 }]
    const held = limiterOf(...rules)
    const decision = await held.acquire(job)
    // Bottleneck's priorities are 0 (first), 5 (default) and 9.
    const jobs = [9, 5, 0].map((old) => ({ name: `${old}`, lastsMs: 5, options: { priority: 5 - old } }))
    const ran = await both.run({ service: "jobs", rules, jobs }, async () => {
      // The first job may have asked before the others came, so wait until Redis has refused it.
      await sleep(500)
      await held.release(decision)
    })
    for (const each of ran) expect(names(each)).toEqual(["0", "5", "9"])
  })

  it("limit each key of a `Group`", async () => {
    const rules = [{ field: "user", concurrent: 1 }]
    const jobs = ["ann", "bob"].flatMap((user) => jobsOf(4, { lastsMs: 150, user }))
    const ran = (await both.run({ service: "jobs", rules, jobs })).flat()
    for (const user of ["ann", "bob"]) expect(mostAtOnce(ran.filter((each) => each.user === user))).toBe(1)
    expect(mostAtOnce(ran)).toBe(2)
  })

  it("obey the limits of a group and of all groups, as chained limiters do", async () => {
    const rules = [
      { field: "user", concurrent: 2 },
      { ...all, concurrent: 3 },
    ]
    const jobs = ["ann", "bob"].flatMap((user) => jobsOf(4, { lastsMs: 150, user }))
    const ran = (await both.run({ service: "jobs", rules, jobs })).flat()
    expect(mostAtOnce(ran)).toBe(3)
    for (const user of ["ann", "bob"]) {
      expect(mostAtOnce(ran.filter((each) => each.user === user))).toBeLessThanOrEqual(2)
    }
  })
})

describe(`the README examples of Bottleneck, on Redis ${version}`, () => {
  it("resolve to the result of a scheduled job, and reject with its error", async () => {
    const limiter = limiterOf({ ...all, concurrent: 1 })
    expect(await limiter.run(job, () => 42)).toBe(42)
    await expect(limiter.run(job, () => Promise.reject(new Error("failed")))).rejects.toThrow("failed")
    expect(limiter.status.inFlight).toBe(0)
  })

  it("wrap a function in one line", async () => {
    const limiter = limiterOf({ ...all, concurrent: 1 })
    const work = async (size: number) => size * 2
    const wrapped = (size: number) => limiter.run(job, () => work(size))
    expect(await Promise.all([1, 2, 3].map(wrapped))).toEqual([2, 4, 6])
  })

  it("refuse a job when `highWater` jobs wait, as OVERFLOW does", async () => {
    const limiter = limiterOf({ ...all, concurrent: 1 })
    const decision = await limiter.acquire(job)
    const run = () => limiter.run(job, () => "done", { maxWaiting: 2 })
    const waiting = [run(), run()]
    await expect(run()).rejects.toBeInstanceOf(RateLimitExceededError)
    await limiter.release(decision)
    expect(await Promise.all(waiting)).toEqual(["done", "done"])
  })

  it("end a wait or a job by a signal, instead of `expiration`", async () => {
    const limiter = limiterOf({ ...all, concurrent: 1 })
    const signal = AbortSignal.timeout(100)
    const running = limiter.run(job, () => ticks(signal), { signal })
    const waiting = limiter.run(job, () => ticks(), { signal: AbortSignal.timeout(50) })
    await expect(waiting).rejects.toMatchObject({ name: "TimeoutError" })
    await expect(running).rejects.toMatchObject({ name: "AbortError" })
    expect(await limiter.run(job, () => "next")).toBe("next")
  })

  it("count the jobs that wait and run", async () => {
    const limiter = limiterOf({ ...all, concurrent: 2 })
    const ended = new AbortController()
    const runs = [1, 2, 3].map(() => limiter.run(job, () => ticks(ended.signal).catch(() => undefined)))
    await until("two jobs run", () => limiter.status.inFlight === 2)
    expect(limiter.status).toMatchObject({ inFlight: 2, waiting: 1 })
    ended.abort()
    await Promise.all(runs)
    expect(limiter.status).toMatchObject({ inFlight: 0, waiting: 0 })
  })

  it("stop: reject new and waiting jobs, and let the running job end", async () => {
    const limiter = limiterOf({ ...all, concurrent: 1 })
    let end = (_result: string): void => {}
    const running = limiter.run(job, () => new Promise<string>((resolve) => (end = resolve)))
    await until("a job runs", () => limiter.status.inFlight === 1)
    const waiting = limiter.run(job, () => "never")
    const rejected = expect(waiting).rejects.toBeInstanceOf(ClosedError)
    await limiter.close()
    await rejected
    await expect(limiter.run(job, () => "never")).rejects.toBeInstanceOf(ClosedError)
    end("done")
    expect(await running).toBe("done")
  })
})

/** Returns the most jobs that the first rule counted in one window. */
function mostInWindow(ran: readonly Ran[]): number {
  const windows = ran.map(({ windows: [startMs] }) => startMs)
  return Math.max(...windows.map((startMs) => windows.filter((other) => other === startMs).length))
}
