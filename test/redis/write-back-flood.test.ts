import type { Store } from "@sluice/core"
import type { Check, Policy } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import { leasedStore, mirroredStore, writeBackStore } from "@sluice/scale"
import { Redis } from "ioredis"
import { beforeEach, describe, expect, it } from "vitest"
import { check, SLIDING } from "../../packages/contracts/src/store/asking.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import type { RedisServer } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { examples } from "../test-length.ts"
import { unitsIn } from "./counted.ts"
import { afterwards, asker, checkEachTest, oneEach } from "./load.ts"

checkEachTest()

const { server } = await redisForTests()
const { server: near } = await redisForTests()
beforeEach(() => server.command("FLUSHALL"))

const POLICY: Policy = { ...SLIDING, limit: 100, windowMs: 86_400_000 }
const checkOf = (nth: number): Check => check(POLICY, 1, { partition: oneEach(nth) })

function connect({ port, host }: RedisServer): Redis {
  const client = new Redis(port, host)
  client.on("error", () => {})
  afterwards(() => client.disconnect())
  return client
}

function open(maxKeys: number) {
  const client = connect(server)
  const store = writeBackStore(redisStore({ client }), { maxKeys })
  afterwards(() => store.close())
  return { client, store }
}

/** The duration of a flood. Must be longer than the second after which the store gives up charges. */
const FLOOD_MS = examples(1_400, 2_700)
/**
 * The longest allowed tick. With unbounded charges, ticks of a longer flood took 1,400 ms. With bounded charges, ticks
 * take up to 160 ms when coverage is measured.
 */
const MOST_CPU_MS = 400

/**
 * Returns the third longest tick of the event loop during some work, in milliseconds of CPU time. Skips the two
 * longest, which the garbage collector or the compiler may have caused.
 */
async function longTurnMs(work: () => Promise<unknown>): Promise<number> {
  let isDone = false
  const done = work().finally(() => (isDone = true))
  const turnsMs: number[] = []
  while (!isDone) {
    const before = process.cpuUsage()
    await new Promise(setImmediate)
    const { user, system } = process.cpuUsage(before)
    turnsMs.push((user + system) / 1000)
  }
  await done
  return turnsMs.sort((a, b) => b - a)[2] ?? 0
}

/** Sends requests of new clients at a rate of 2,000 a second. Returns the number of granted requests. */
async function flood(store: Store, ms: number, first = 0): Promise<number> {
  let granted = 0
  const beganMs = performance.now()
  for (let sent = first; performance.now() - beganMs < ms; ) {
    const most = Math.min(first + (performance.now() - beganMs) * 2, sent + 100)
    for (; sent < most; sent++) {
      const answer = await store.take([checkOf(sent)])
      if (answer?.granted === true) granted++
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return granted
}

/** Closes the store. Expects that closing blocks the event loop only briefly and takes less than ten seconds. */
async function expectQuickClose(store: Store): Promise<void> {
  const beganMs = performance.now()
  expect(await longTurnMs(async () => store.close())).toBeLessThan(MOST_CPU_MS)
  expect(performance.now() - beganMs).toBeLessThan(10_000)
}

describe("2,000 new clients a second, while Redis is frozen", () => {
  it("neither block the event loop nor delay close(), which reports uncharged units as lost", async () => {
    const { client, store } = open(10_000)
    const settledKeys = await flood(store, 100)
    await until("charges are confirmed", async () => (await unitsIn(server, "")) === settledKeys)
    server.freeze()
    let granted = settledKeys
    const turnMs = await longTurnMs(async () => {
      granted += await flood(store, FLOOD_MS, 100_000)
    })
    expect(turnMs).toBeLessThan(MOST_CPU_MS)
    // The number of calls must be small, because a client collects the calls to a frozen server in memory.
    expect(client.commandQueue.length).toBeLessThan(100)
    await expectQuickClose(store)
    expect(store.status?.writeBack?.lost).toBe(granted - settledKeys)
    server.thaw()
  })
  const OTHERS: readonly (readonly [string, (client: Redis) => Store])[] = [
    ["leases", (client) => leasedStore(redisStore({ client }))],
    [
      "mirrored counters of another data center",
      (client) => {
        const store = redisStore({ client: connect(near) })
        return mirroredStore({ near: store, far: { other: redisStore({ client }) } })
      },
    ],
  ]
  it.each(OTHERS.slice(0, examples(1, 2)))(
    "neither block the event loop nor delay close() with %s",
    async (_name, storeOf) => {
      const client = connect(server)
      const store = storeOf(client)
      const app = asker(store)
      await app.askUntil(false)
      server.freeze()
      afterwards(() => server.thaw())
      const turnMs = await longTurnMs(async () => {
        const stop = app.load(oneEach)
        await new Promise((resolve) => setTimeout(resolve, FLOOD_MS))
        await stop()
      })
      expect(app.decisions.length).toBeGreaterThan(examples(250, 1_000))
      expect(turnMs).toBeLessThan(MOST_CPU_MS)
      expect(client.commandQueue.length).toBeLessThan(100)
      await expectQuickClose(store)
    },
  )
})
