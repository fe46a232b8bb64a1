import { once } from "node:events"
import { createLimiter, type RequestFacts } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterAll, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { until } from "../servers/until.ts"
import { forked, killInstances } from "./instances.ts"
import { RESERVING, type Settling } from "./reserving.ts"

const { server } = await redisForTests()
afterAll(killInstances)

const PROCESS = new URL("./settling-process.ts", import.meta.url)

it("a reservation stays charged once, and its permit ends, if a process is killed between the mark and the refund", async () => {
  const child = forked(PROCESS.pathname, { port: server.port } satisfies Settling, {})
  const [{ text }] = (await once(child, "message")) as [{ text: string }]
  const gone = once(child, "exit")
  child.kill("SIGKILL")
  await gone

  const client = new Redis(server.port, server.host)
  const store = redisStore({ client })
  const limiter = createLimiter<RequestFacts>({ ...RESERVING, rules: [...RESERVING.rules], store })
  const left = async (): Promise<readonly unknown[]> =>
    (await limiter.peek({})).checks.map(({ remaining }) => remaining)
  try {
    expect(await limiter.settleReservation(text, { used: { tokens: 30 } })).toBe(false)
    expect((await left()).at(0)).toBe(900)
    await until("the permit has ended", async () => String(await left()) === "900,5")
    expect(await limiter.settleReservation(text, { refund: true })).toBe(false)
  } finally {
    await limiter.close()
    await store.close()
    client.disconnect()
  }
})
