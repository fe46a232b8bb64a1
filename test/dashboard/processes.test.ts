import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import type { ActivityOverview } from "@sluice/dashboard"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { forked, killInstances } from "../redis/instances.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { until } from "../servers/until.ts"
import { expectBounds } from "./expect-bounds.ts"
import type { Order } from "./recording-process.ts"
import { TRAFFIC, total } from "./traffic.ts"

const KEY = "sl2:{activity}"
const PROCESS = fileURLToPath(new URL("./recording-process.ts", import.meta.url))

const { server } = await redisForTests()
let children: readonly ChildProcess[]

beforeAll(async () => {
  children = [0, 1, 2].map(() => forked(PROCESS, { port: server.port }, {}))
  await Promise.all(children.map((child) => once(child, "message")))
})
afterAll(killInstances)

async function ask<Reply>(child: ChildProcess | undefined, order: Order): Promise<Reply> {
  if (child === undefined) throw new Error("there are three processes")
  const reply = once(child, "message")
  child.send(order)
  return ((await reply) as [Reply])[0]
}

/** Returns how often a command ran on the server, also in scripts. */
async function timesOf(command: string): Promise<number> {
  const stats = String(await server.command("INFO", "commandstats"))
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

async function overviewOf(
  child: ChildProcess | undefined,
  holds: (overview: ActivityOverview) => boolean,
): Promise<ActivityOverview> {
  let overview: ActivityOverview | undefined
  await until("the overview is complete", async () => {
    overview = await ask<ActivityOverview>(child, "overview")
    return holds(overview)
  })
  return overview as ActivityOverview
}

function instancesIn({ services }: ActivityOverview): readonly (readonly string[])[] {
  return services.map(({ instances }) => instances.map(({ instance }) => instance).sort())
}

describe("three processes that share their activity", () => {
  const exact = new Map<string, Map<string, number>>()

  it("only ask while nobody watches, and write nothing", async () => {
    for (const [first, child] of children.entries()) {
      const refusals = await ask<Record<string, [string, number][]>>(child, { send: first })
      for (const [service, refused] of Object.entries(refusals)) {
        const sum = exact.get(service) ?? new Map<string, number>()
        for (const [key, times] of refused) sum.set(key, (sum.get(key) ?? 0) + times)
        exact.set(service, sum)
      }
    }
    await until("each process has asked", async () => (await timesOf("evalsha")) >= 3)
    expect(await timesOf("hset")).toBe(0)
    expect(await server.command("EXISTS", KEY)).toBe(0)
  })

  it("bound the true counts of Zipf traffic and of an attack, whichever process shows them", async () => {
    const first = await overviewOf(children[0], (overview) =>
      instancesIn(overview).every(({ length }) => length === 3),
    )
    expect(first.missing).toBeUndefined()
    expect(first.services.map(({ service }) => service)).toEqual(Object.keys(TRAFFIC).sort())
    for (const { service, rules } of first.services) {
      const refused = exact.get(service) ?? new Map<string, number>()
      expect(total(rules[0]?.slots.refused ?? [])).toBe(total(refused.values()))
      expectBounds(rules[0], refused)
    }
    const last = await overviewOf(children[2], (overview) =>
      instancesIn(overview).every(({ length }) => length === 3),
    )
    expect(instancesIn(last)).toEqual(instancesIn(first))
  })

  it("keep what they write for at most ten seconds of Redis' clock, and forget a killed process", async () => {
    expect(await server.command("PTTL", KEY)).toBeLessThanOrEqual(10_000)
    const [killed, left] = [children[1] as ChildProcess, children[0]]
    const gone = once(killed, "exit")
    killed.kill("SIGKILL")
    await gone
    const before = (await server.command("HKEYS", KEY)) as readonly string[]
    const nowMs = Number(((await server.command("TIME")) as readonly string[])[0]) * 1_000
    for (const field of before) {
      const [endMs = "", owner = ""] = field.split(" ")
      expect(Number(endMs)).toBeGreaterThan(nowMs)
      expect(Number(endMs)).toBeLessThan(nowMs + 11_000)
      if (owner === "") continue
      // Move the ends of all processes back, instead of waiting for them. The living processes write again.
      const value = (await server.command("HGET", KEY, field)) as string
      await server.command("HSET", KEY, `${nowMs - 1} ${owner}`, value)
      await server.command("HDEL", KEY, field)
    }
    const overview = await overviewOf(left, (each) => instancesIn(each).every(({ length }) => length === 2))
    expect(overview.missing).toBeUndefined()
    expect((await server.command("HKEYS", KEY)) as readonly string[]).not.toContainEqual(
      expect.stringMatching(`^${nowMs - 1} `),
    )
  })

  it("end by themselves, because no timer keeps them alive", async () => {
    const child = children[2] as ChildProcess
    const gone = once(child, "exit")
    child.send("leave" satisfies Order)
    expect(await gone).toEqual([0, null])
  })
})
