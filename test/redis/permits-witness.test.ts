import { once } from "node:events"
import { get, type IncomingMessage } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { createLimiter, type Limiter, type Rule } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import { redisStore } from "@sluice/redis"
import express from "express"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { listening } from "../servers/listening.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startRedis } from "../servers/redis-server.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { examples } from "../test-length.ts"
import { clusterForTests } from "./cluster-for-tests.ts"
import { killInstances } from "./instances.ts"
import { openClient } from "./open-client.ts"
import { History, monotonicMs, type Work } from "./permit-history.ts"
import type { Job, Works } from "./permit-process.ts"
import { startWorkers, type Worker } from "./permit-workers.ts"

// Four processes share the permits of one rule, and run works of 5 ms to several seconds. This process is the witness: it
// knows when each work began and ended, and when a process was killed or frozen. It does not trust the processes' timers:
// each process measures how long it did not run, and the bounds take this into account. The processes use the packages as
// built.

const HOLD_MS = 2_000
/** A permit is counted in a window of this length. Processes renew between 10 % and 30 % of each window. */
const WINDOW_MS = HOLD_MS / 2
/** By how much a fault begins before the window whose renewals it meets. */
const BEFORE_MS = 50
const PERMITS = 10
const IN_FLIGHT: Rule<Job> = { name: "in-flight", field: "user", concurrent: PERMITS, hold: HOLD_MS }
/** Each process asks for as many permits, so that all together ask for more than there are. */
const JOBS = 4
/** The time for replies to arrive, on a machine on which a process is hardly ever away for 100 ms. */
const LATE_MS = 500

const { server } = await redisForTests()
const { cluster } = await clusterForTests({ primaries: 3 }, [])
let workers: readonly Worker[] = []
let made = 0
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const worker of workers) if (worker.isAlive) worker.thaw()
  await Promise.allSettled(workers.filter(({ isAlive }) => isAlive).map((worker) => worker.finish()))
  for (const close of closers.splice(0).reverse()) await close()
})
afterAll(killInstances)

interface Play {
  readonly history: History
  readonly limiter: Limiter<Job>
  readonly counted: () => Promise<number>
  /** Starts more works in a process. Only the latest works can be finished. */
  readonly start: (worker: Worker, jobs: number) => void
  /** Ends all works. Resolves with the refusals by their reason, and with the time. */
  readonly finish: () => Promise<{ refused: Readonly<Record<string, number>>; atMs: number }>
}

interface Settings extends Partial<Omit<Works, "client">> {
  /** The port of each process, or the ports of the cluster. */
  readonly ports?: readonly number[]
  readonly isCluster?: boolean
}

/** Returns the units that a rule's counter contains now. */
async function countOf(limiter: Limiter<Job>, rule: string, user = "ann"): Promise<number> {
  const { checks } = await limiter.peek({ user }, { cost: 0, rules: [rule] })
  const counts = checks.find(({ policy }) => policy === rule)?.counts
  if (counts === undefined) throw new Error(`${rule} was not read`)
  return counts.previous + counts.current
}

/** Starts works in all processes, and reads the count all the time. */
async function play({ ports = [server.port], isCluster = false, ...more }: Settings = {}): Promise<Play> {
  const history = new History(HOLD_MS)
  const prefix = `w${made++}:`
  const works = { prefix, rules: [IN_FLIGHT], jobs: JOBS, users: ["ann"], ...more }
  const { client, close } = await openClient({ library: "ioredis 6", ports: ports.slice(-1), isCluster })
  const limiter = createLimiter<Job>({
    store: redisStore({ client, prefix, denyCacheMs: 0 }),
    service: "works",
    fields: { user: ({ user }) => user },
    rules: [...works.rules],
    storeTimeoutMs: 20_000,
  })
  const counted = async () => {
    const fromMs = monotonicMs()
    const count = await countOf(limiter, works.rules.at(-1)?.name ?? "")
    history.samples.push({ fromMs, toMs: monotonicMs(), counted: count })
    return count
  }
  let isOver = false
  const sampling = (async () => {
    while (!isOver) {
      await counted()
      await sleep(20)
    }
  })()
  closers.push(async () => {
    isOver = true
    await sampling
    await limiter.close()
    close()
  })
  const start = (worker: Worker, jobs = works.jobs) => {
    const library = worker.nth % 2 === 0 ? "ioredis 6" : "node-redis 6"
    const port = ports[worker.nth % ports.length] ?? 0
    worker.run(history, {
      client: { library, ports: isCluster ? ports : [port], isCluster },
      lastMs: [5, 3_000],
      ...works,
      jobs,
    })
  }
  for (const worker of workers) start(worker)
  const finish = async () => {
    const all = await Promise.all(workers.filter(({ isAlive }) => isAlive).map((worker) => worker.finish()))
    const refused: Record<string, number> = {}
    for (const each of all)
      for (const [reason, times] of Object.entries(each)) refused[reason] = (refused[reason] ?? 0) + times
    return { refused, atMs: monotonicMs() }
  }
  return { history, limiter, counted, start, finish }
}

async function allRun({ history }: Play): Promise<void> {
  await until("all permits are in use", () => history.running().length >= PERMITS)
}

function expectBounds({ history }: Play): void {
  expect(history.mostHeld(), "most works that run at the same time and have lost no permit").toBe(PERMITS)
  expect(history.lostWithoutReason).toBe(0)
}

describe("of four processes that run works with ten permits", { timeout: 120_000 }, () => {
  beforeAll(async () => {
    workers = await startWorkers(4)
  })

  it("one that is frozen for less than a third of hold loses no permit", async () => {
    const all = await play()
    const { history } = all
    await allRun(all)
    for (const worker of workers.slice(0, 3)) {
      worker.freeze()
      await sleep(HOLD_MS / 4)
      worker.thaw()
      await sleep(HOLD_MS / 4)
    }
    const toMs = monotonicMs()
    await all.finish()
    expectBounds(all)
    expect(history.disagreements(0, toMs)).toEqual([])
  })

  it("one that is frozen for longer than hold overlaps with others by what it held, and reports it", async () => {
    const all = await play({ lastMs: [500, 12_000] })
    const { history } = all
    const enough = 2.5 * HOLD_MS
    const longest = (worker: Worker): Work[] =>
      history.running({ worker: worker.nth }).filter(({ untilMs }) => untilMs > monotonicMs() + enough)
    let frozen: Worker | undefined
    await until("a process has long works", () => {
      frozen = workers.find((worker) => longest(worker).length >= 2)
      return frozen !== undefined && history.running().length >= PERMITS
    })
    frozen?.freeze()
    const held = history.running({ worker: frozen?.nth ?? 0 }).length
    await sleep(1.2 * HOLD_MS)
    const thawedMs = frozen?.thaw() ?? 0
    await until("the loss is reported", () => history.lost.size > 0)
    await sleep(HOLD_MS)
    const countsMs = thawedMs + HOLD_MS + history.lateMs(thawedMs, monotonicMs())
    await until("all is counted again", () => monotonicMs() > countsMs + LATE_MS)
    const toMs = monotonicMs()
    await all.finish()
    expectBounds(all)
    expect([...history.lost.keys()]).toContain(frozen?.nth)
    expect(history.mostRunning()).toBeGreaterThan(PERMITS)
    expect(history.mostRunning()).toBeLessThanOrEqual(PERMITS + held + 1)
    expect(history.disagreements(countsMs, toMs)).toEqual([])
    expect(history.samplesOf(countsMs, toMs).length).toBeGreaterThan(2)
  })

  it("no message that is lost or late frees a permit, and what it leaves counted ends within hold", async () => {
    const proxy = await startProxy(server)
    closers.push(() => proxy.close())
    const ports = [proxy.port, proxy.port, proxy.port, server.port]
    const all = await play({ ports, lastMs: [200, 9_000] })
    const { history } = all
    await allRun(all)
    const faults = [
      () => proxy.pause("requests"),
      () => {
        proxy.dropReplies = true
      },
      () => proxy.pause("replies"),
      () => {
        proxy.delayMs = 25
      },
    ]
    for (const [nth, begin] of faults.entries()) {
      // All renewals of a window take place during the fault.
      await sleep((2 * WINDOW_MS - BEFORE_MS - (Date.now() % WINDOW_MS)) % WINDOW_MS)
      begin()
      await sleep(HOLD_MS / 5)
      // The first two faults lose what was sent.
      if (nth < 2) proxy.cut()
      proxy.dropReplies = false
      proxy.resume()
    }
    await sleep(WINDOW_MS)
    proxy.delayMs = 0
    const { atMs } = await all.finish()
    expectBounds(all)
    const extra = await all.counted()
    await sleep(HOLD_MS)
    expect(await all.counted(), `${extra} at first`).toBe(0)
    const few = history.disagreements(0, atMs).filter(({ counted, least }) => counted < least)
    expect(few).toEqual([])
  })

  describe("counts that are lost", () => {
    async function expectHealed(all: Play, beforeMs: number): Promise<void> {
      const atMs = monotonicMs()
      const { history } = all
      await sleep(0.65 * HOLD_MS)
      const healedMs = atMs + 0.65 * HOLD_MS + history.lateMs(atMs, monotonicMs()) + LATE_MS
      await until("some time has passed", () => monotonicMs() > healedMs + LATE_MS)
      const toMs = monotonicMs()
      await all.finish()
      expect(history.mostHeld({ toMs: beforeMs })).toBe(PERMITS)
      expect(history.mostHeld()).toBeLessThanOrEqual(2 * PERMITS)
      expect(history.mostHeld({ fromMs: healedMs, toMs })).toBeLessThanOrEqual(PERMITS)
      expect(history.disagreements(healedMs, toMs)).toEqual([])
      expect(history.samplesOf(healedMs, toMs).length).toBeGreaterThan(2)
    }

    it("admit at most as many works again, and agree with the works that run soon", async () => {
      const all = await play()
      await allRun(all)
      const beforeMs = monotonicMs()
      await server.command("FLUSHALL")
      await expectHealed(all, beforeMs)
      expect(all.history.mostRunning()).toBeGreaterThan(PERMITS)
    })

    it("do the same if a replica takes the place of a primary that dies", async () => {
      const primary = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] })
      closers.push(() => primary.stop())
      const args = ["--replicaof", primary.host, `${primary.port}`]
      const replica = await startRedis({ args })
      closers.push(() => replica.stop())
      const proxy = await startProxy(primary)
      closers.push(() => proxy.close())
      await until("the replica is in step", async () => {
        return String(await primary.command("INFO", "replication")).includes("state=online")
      })
      const all = await play({ ports: [proxy.port] })
      await allRun(all)
      const beforeMs = monotonicMs()
      await primary.kill()
      await replica.command("REPLICAOF", "NO", "ONE")
      proxy.target = replica
      proxy.cut()
      await expectHealed(all, beforeMs)
    })
  })

  it("a refusal by a rate takes no permit, and a refusal by permits takes nothing of the rate", async () => {
    const quota = 400
    const rate: Rule<Job> = { name: "rate", field: "user", limit: quota, window: "30 days" }
    const all = await play({ rules: [rate, IN_FLIGHT], lastMs: [1, 20], maxWaitMs: 0 })
    const { history, limiter } = all
    await until("the quota is used", () => history.works.length >= quota)
    await sleep(100)
    const { refused } = await all.finish()
    expectBounds(all)
    expect(refused["in-flight"]).toBeGreaterThan(0)
    expect(refused.quota).toBeGreaterThan(0)
    expect([history.works.length, await countOf(limiter, "rate"), await all.counted()]).toEqual([
      quota,
      quota,
      0,
    ])
  })

  it("three that are killed leave their permits to the others within hold, and a fourth leaves none", async () => {
    const all = await play()
    const { history } = all
    await allRun(all)
    const [survivor, ...victims] = workers as [Worker, ...Worker[]]
    all.start(survivor, 2 * PERMITS)
    await Promise.all(victims.map((victim) => victim.kill()))
    const killedMs = monotonicMs()
    await allRun(all)
    const usedMs = Math.max(...history.running().map(({ beganMs }) => beganMs)) - killedMs
    await survivor.kill()
    const counted = await all.counted()
    await sleep(HOLD_MS)
    expect([counted > 0, await all.counted()]).toEqual([true, 0])
    expect(history.works.filter(({ worker, wasKilled }) => wasKilled && worker !== survivor.nth)).not.toEqual(
      [],
    )
    expect(usedMs).toBeLessThan(HOLD_MS + history.lateMs(killedMs, monotonicMs()) + LATE_MS)
    expectBounds(all)
  })
})

describe("on a cluster, of four processes that run works under three rules", { timeout: 120_000 }, () => {
  beforeAll(async () => {
    workers = await startWorkers(4)
  })

  it("one is killed, and the others never run more than each rule allows", async () => {
    const users = ["ann", "bob", "cid"]
    const rate: Rule<Job> = { name: "rate", field: "user", limit: 1_000_000, window: "30 days" }
    const own: Rule<Job> = { ...IN_FLIGHT, concurrent: 4 }
    // The counter of the whole service is in another slot than those of a user.
    const service: Rule<Job> = { ...IN_FLIGHT, name: "all", field: "service" }
    const all = await play({
      ports: cluster.nodes.map(({ port }) => port),
      isCluster: true,
      ...{ users, rules: [rate, own, service] },
    })
    const { history, limiter } = all
    await allRun(all)
    const [victim] = workers as [Worker]
    await until("the victim holds permits", () => history.running({ worker: victim.nth }).length > 1)
    await victim.kill()
    const killedMs = monotonicMs()
    await until("its permits are free", () => monotonicMs() > killedMs + HOLD_MS)
    await allRun(all)
    const { atMs } = await all.finish()
    expectBounds(all)
    for (const user of users) expect(history.mostHeld({ user })).toBeLessThanOrEqual(4)
    expect(history.disagreements(0, atMs).filter(({ counted, least }) => counted < least)).toEqual([])

    await sleep(HOLD_MS)
    const counts = (rule: string) => Promise.all(users.map((user) => countOf(limiter, rule, user)))
    expect([await all.counted(), ...(await counts("in-flight"))]).toEqual([0, 0, 0, 0])
    // The victim may have taken units for works that it could not begin.
    const taken = (await counts("rate")).reduce((sum, units) => sum + units) - history.works.length
    expect(taken).toBeGreaterThanOrEqual(0)
    expect(taken).toBeLessThanOrEqual(JOBS)
  })
})

it("clients that hang up in the middle of a response of Express leave no permit counted", async () => {
  const { client, close } = await openClient({ library: "ioredis 6", ports: [server.port], isCluster: false })
  closers.push(close)
  // Within this hold, a permit that is not released stays counted until the end of the test.
  const limiter = createLimiter<object>({
    store: redisStore({ client, prefix: `w${made++}:` }),
    service: "streams",
    rules: [{ name: "in-flight", field: "service", concurrent: PERMITS, hold: "1 hour" }],
    storeTimeoutMs: 20_000,
  })
  closers.push(() => limiter.close())
  const app = express()
  const running = { now: 0, most: 0 }
  app.use(rateLimit({ limiter }))
  app.get("/", (_request, response) => {
    running.most = Math.max(running.most, ++running.now)
    const timer = setInterval(() => response.write("more "), 1)
    response.once("close", () => {
      clearInterval(timer)
      running.now--
    })
    response.write("first ")
  })
  const { port } = new URL(await listening(app))

  let left = examples(1_000, 10_000)
  let refused = 0
  const hangUp = async () => {
    while (left > 0) {
      const request = get({ port, agent: false })
      const [response] = (await once(request, "response")) as [IncomingMessage]
      if (response.statusCode === 200) left--
      else refused++
      await once(response, "data")
      response.destroy()
      await sleep(response.statusCode === 200 ? 0 : 5)
    }
  }
  await Promise.all(Array.from({ length: PERMITS + 5 }, hangUp))
  // A permit is released after its response has closed, so fewer handlers than permits may have been running.
  expect(running.most).toBeLessThanOrEqual(PERMITS)
  expect(refused).toBeGreaterThan(0)
  await until("all connections are closed", () => running.now === 0)
  await until("all permits are back", async () => {
    const { checks } = await limiter.peek({}, { cost: 0 })
    return checks[0]?.remaining === PERMITS
  })
  expect(limiter.status.inFlight).toBe(0)
})
