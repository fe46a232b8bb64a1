import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { redisStore } from "@sluice/redis"
import { leasedStore } from "@sluice/scale"
import { Redis } from "ioredis"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { until } from "../servers/until.ts"
import { examples } from "../test-length.ts"
import { keysWithoutTtl, unitsIn } from "./counted.ts"
import type { Grant, LeasingApp } from "./leasing-process.ts"
import { afterwards, asker, checkEachTest } from "./load.ts"

checkEachTest()

const { server } = await redisForTests()
beforeEach(() => server.command("FLUSHALL"))

// Processes use the packages as built; `pnpm test` and `pnpm check` build them first.
describe("four processes with leases of a strict window", { timeout: 300_000 }, () => {
  const ROOT = fileURLToPath(new URL("../..", import.meta.url))
  const SCRIPT = fileURLToPath(new URL("leasing-process.ts", import.meta.url))
  const WINDOW_MS = examples(1_500, 3_000)
  const BUCKETS = 10
  const PART_MS = WINDOW_MS / BUCKETS

  const children = new Set<ChildProcess>()
  afterEach(async () => {
    for (const child of children) {
      const gone = once(child, "exit")
      child.kill("SIGKILL")
      await gone
    }
    children.clear()
  })

  class Processes {
    readonly grants: Grant[] = []
    readonly #app: LeasingApp

    constructor(limit: number) {
      this.#app = { port: server.port, limit, windowMs: WINDOW_MS, buckets: BUCKETS }
    }

    start(): { readonly child: ChildProcess; readonly grants: Grant[] } {
      const env = { ...process.env, TSX_TSCONFIG_PATH: `${ROOT}/tsconfig.base.json` }
      const child = fork(SCRIPT, [JSON.stringify(this.#app)], {
        cwd: ROOT,
        execArgv: ["--import", "tsx"],
        env,
      })
      const grants: Grant[] = []
      children.add(child)
      child.once("exit", () => children.delete(child))
      child.on("message", (told) => {
        grants.push(...(told as Grant[]))
        this.grants.push(...(told as Grant[]))
      })
      return { child, grants }
    }

    /** Number of sub-windows in which units were granted. */
    get parts(): number {
      return new Set(this.grants.map(([, startMs]) => startMs)).size
    }

    /** Expects that no window had more units than the limit, and that no lease outlived its sub-window. */
    check(): void {
      const late = this.grants.filter(
        ([beforeMs, startMs, isLeased]) => isLeased && beforeMs >= startMs + PART_MS,
      )
      expect(late).toEqual([])
      const byPart = new Map<number, number>()
      for (const [, startMs] of this.grants) byPart.set(startMs, (byPart.get(startMs) ?? 0) + 1)
      // A strict window counts its current sub-window and the sub-windows before it. Together these cover every
      // window of that length.
      for (const lastMs of byPart.keys()) {
        let units = 0
        for (let i = 0; i <= BUCKETS; i++) units += byPart.get(lastMs - i * PART_MS) ?? 0
        expect([lastMs, units <= this.#app.limit, units]).toEqual([lastMs, true, units])
      }
      expect(this.grants.some(([, , isLeased]) => isLeased)).toBe(true)
    }
  }

  const LIMITS: readonly (readonly [what: string, limit: number])[] = [
    ["that they reach", 4_000],
    ["that they do not reach", 1_000_000],
  ]
  it.each(LIMITS.slice(0, examples(1, 2)))(
    "never exceed a limit %s, even if one process is killed and another is stopped past its lease",
    async (_, limit) => {
      const processes = new Processes(limit)
      const running = [1, 2, 3, 4].map(() => processes.start())
      const [victim, stopped] = running as [(typeof running)[0], (typeof running)[0]]
      await until("all have leases", () =>
        running.every(({ grants }) => grants.some(([, , isLeased]) => isLeased)),
      )
      victim.child.kill("SIGKILL")
      for (let times = 0; times < examples(1, 3); times++) {
        stopped.child.kill("SIGSTOP")
        const before = processes.parts
        await until("the sub-window of its lease has passed", () => processes.parts > before + 2)
        stopped.child.kill("SIGCONT")
        const granted = stopped.grants.length
        await until("it is granted more", () => stopped.grants.length > granted + 20)
      }
      const before = processes.parts
      await until("another window has passed", () => processes.parts > before + BUCKETS)
      processes.check()
      expect(await keysWithoutTtl(server)).toEqual([])
    },
  )
})

describe("when Redis freezes while leases are held", () => {
  it("requests use up the leases, are then degraded, and are never delayed beyond their deadline", async () => {
    const client = new Redis(server.port, server.host)
    client.on("error", () => {})
    afterwards(() => client.disconnect())
    const store = leasedStore(redisStore({ client }))
    afterwards(() => store.close())
    const app = asker(store, { field: "service" })
    const leased = () =>
      app.decisions.filter(({ degraded, checks }) => !degraded && (checks[0]?.ageMs ?? 0) > 0)
    const stop = app.load()
    await until("requests are granted from leases", () => leased().length > 200)

    server.freeze()
    await until("decisions are degraded", () => app.events.at(-1) === "degraded")
    await until("no call is waiting", () => app.decidesAtOnce())
    await sleep(1_000)
    const opened = app.decisions.length
    await until("many have been decided", () => app.decisions.length > opened + 50)
    // The leases have ended, because a call without a reply from Redis does not renew them.
    expect(app.decisions.slice(opened).every(({ degraded, allowed }) => degraded && allowed)).toBe(true)
    expect(store.status?.leases?.held).toBe(0)

    server.thaw()
    const before = leased().length
    await until("requests are granted from leases again", () => leased().length > before + 50)
    await stop()
    await app.askUntilRecovered()
    expect(app.late).toBe(0)
    // The units of every grant were counted when they were reserved. Reserved units that were lost in the outage stay
    // counted.
    const { booked = 0 } = store.status?.leases ?? {}
    const counted = await unitsIn(server, "")
    expect(counted).toBeGreaterThanOrEqual(app.granted())
    expect(counted).toBeLessThanOrEqual(app.granted() + booked)
    expect(await keysWithoutTtl(server)).toEqual([])
  })
})
