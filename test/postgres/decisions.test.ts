import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { recordDecisions } from "@sluice/recording"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { Pool } from "pg"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { postgresDecisions, TABLE, USAGE } from "../../examples/src/postgres/decisions.ts"
import { takeMissing, type Usage } from "../../examples/src/postgres/take-missing.ts"
import { type PostgresServer, startPostgres } from "../servers/postgres.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startRedis } from "../servers/redis-server.ts"

const START_MS = Date.UTC(2024, 0, 15)
let server: PostgresServer
let pool: Pool
beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ user: "postgres", database: "postgres", host: server.host, port: server.port, max: 4 })
  await pool.query(TABLE)
})
afterEach(() => pool.query("TRUNCATE decisions"))
afterAll(async () => {
  await pool?.end()
  await server?.stop()
})

function open() {
  const clock = manualClock(START_MS)
  const warnings: string[] = []
  const log = (_fields: object, message: string) => void warnings.push(message)
  const logger = { warn: log, error: log }
  const limiter = createLimiter({
    ...{ service: "shop", clock },
    rules: [
      { name: "per-client", field: "ip", limit: 6, window: "1 hour", algorithm: "fixed-window" },
      { name: "all", field: "service", limit: 1_000, window: "1 hour", shadow: true },
    ],
  })
  const recorder = recordDecisions(limiter, postgresDecisions(pool), { batchSize: 4, clock, logger })
  return { clock, limiter, recorder, warnings }
}

describe("the decisions table", () => {
  it("contains a row for each decision and rule", async () => {
    const { limiter, recorder } = open()
    const client = { remoteAddress: "192.0.2.7" }
    await limiter.decide(client, { cost: 5 })
    await limiter.decide(client, { cost: 2 })
    await recorder.close()
    const { rows } = await pool.query(
      `SELECT policy, client, cost::int, admitted, refused, "limit"::int, remaining::int, shadow, degraded, service,
         extract(epoch FROM at)::float8 * 1000 AS ms FROM decisions ORDER BY policy DESC, cost DESC`,
    )
    const common = { degraded: false, service: "shop", ms: START_MS }
    const ofClient = {
      ...common,
      policy: "per-client",
      client: "192.0.2.7",
      limit: 6,
      remaining: 1,
      shadow: false,
    }
    const ofAll = { ...common, policy: "all", client: "", limit: 1_000, remaining: 995, shadow: true }
    expect(rows).toEqual([
      { ...ofClient, cost: 5, admitted: true, refused: false },
      { ...ofClient, cost: 2, admitted: false, refused: true },
      { ...ofAll, cost: 5, admitted: true, refused: false },
      { ...ofAll, cost: 2, admitted: false, refused: false },
    ])
    expect(recorder.status).toMatchObject({ waiting: 0, written: 2 })
  })

  it("can be summed to the units that each client used in a month", async () => {
    const { clock, limiter, recorder } = open()
    const [ann, bob] = [{ remoteAddress: "192.0.2.7" }, { remoteAddress: "192.0.2.8" }]
    await limiter.decide(ann, { cost: 4 })
    await limiter.decide(ann, { cost: 3 })
    await limiter.decide(ann, { cost: 2 })
    await limiter.decide(bob)
    clock.set(Date.UTC(2024, 1, 1))
    await limiter.decide(bob, { cost: 6 })
    await recorder.close()
    const { rows } = await pool.query(USAGE)
    expect(rows).toEqual([
      { client: "192.0.2.7", units: "6" },
      { client: "192.0.2.8", units: "1" },
    ])
  })

  it("is summed through its index, without a scan of the table", async () => {
    const client = await pool.connect()
    // PostgreSQL would read an empty table faster without the index.
    await client.query("SET enable_seqscan = off")
    const { rows } = await client.query(`EXPLAIN ${USAGE}`)
    await client.query("RESET enable_seqscan")
    client.release()
    expect(JSON.stringify(rows)).toContain("decisions_service_policy_client_at_idx")
  })
})

it("the decisions table accepts any string as a client", async () => {
  const { limiter, recorder } = openByKey()
  const keys = [
    "a\0b",
    "'; DROP TABLE decisions; --",
    '\\"{}',
    "\u65e5\u672c",
    "\ud83d\ude00",
    "x".repeat(500),
  ]
  for (const key of keys) await limiter.decide({ headers: { "x-user": key } })
  await recorder.close()
  expect(recorder.status).toEqual({
    waiting: 0,
    written: 6,
    lost: { bufferFull: 0, sinkFailed: 0, closed: 0 },
  })
  const { rows } = await pool.query("SELECT client FROM decisions")
  const clients: string[] = rows.map(({ client }) => client)
  expect(clients).toEqual(expect.arrayContaining(["a\ufffdb", keys[1], keys[2], keys[3]]))
  expect(new Set(clients).size).toBe(6)
})

describe("takeMissing", async () => {
  const { client: redis, server: redisServer } = await redisForTests()
  const clock = manualClock(START_MS)
  const limiter = createLimiter<{ readonly client: string }>({
    ...{ service: "shop", name: "per-client", limit: 10, per: "month" },
    ...{ field: "account", fields: { account: ({ client }) => client } },
    ...{ clock, store: redisStore({ client: redis, clock }), storeTimeoutMs: 5_000 },
  })
  afterAll(() => limiter.close())

  async function usedBy(client: string): Promise<number> {
    return 10 - (await limiter.peek({ client })).remaining
  }

  it("takes the recorded units that a Redis has lost, and takes none twice", async () => {
    const recorder = recordDecisions(limiter, postgresDecisions(pool), { clock })
    await limiter.decide({ client: "ann" }, { cost: 7 })
    await limiter.decide({ client: "bob" }, { cost: 3 })
    await redisServer.command("FLUSHALL")
    await limiter.decide({ client: "ann" }, { cost: 1 })
    await recorder.close()
    expect([await usedBy("ann"), await usedBy("bob")]).toEqual([1, 0])

    const { rows } = await pool.query<Usage>(USAGE)
    for (let time = 0; time < 2; time++) {
      await takeMissing(limiter, rows)
      expect([await usedBy("ann"), await usedBy("bob")]).toEqual([8, 3])
    }
  })

  it("uses up the limit of a client that got more than its limit, because Redis had lost its units", async () => {
    await redisServer.command("FLUSHALL")
    await takeMissing(limiter, [{ client: "ann", units: "17" }])
    expect(await usedBy("ann")).toBe(10)
  })
})

it("takeMissing rejects while Redis does not respond", async () => {
  const redisServer = await startRedis()
  const redis = new Redis(redisServer.port, redisServer.host)
  redis.on("error", () => {})
  const quiet = { warn() {}, error() {} }
  const limiter = createLimiter<Usage>({
    ...{ service: "shop", name: "per-client", limit: 10, per: "month" },
    ...{ field: "account", fields: { account: ({ client }) => client } },
    ...{ store: redisStore({ client: redis }), logger: quiet },
  })
  await redisServer.stop()
  await expect(takeMissing(limiter, [{ client: "ann", units: "7" }])).rejects.toThrow("does not respond")
  await limiter.close()
  redis.disconnect()
})

function openByKey() {
  const limiter = createLimiter({ service: "shop", limit: 9, window: "1 hour", field: "header:x-user" })
  return { limiter, recorder: recordDecisions(limiter, postgresDecisions(pool)) }
}

it("a failure of the database loses records, but affects no decision", async () => {
  const { limiter, recorder, warnings } = open()
  await pool.query("ALTER TABLE decisions RENAME TO elsewhere")
  for (let n = 0; n < 4; n++)
    expect((await limiter.decide({ remoteAddress: "192.0.2.7" })).allowed).toBe(true)
  await recorder.close()
  await pool.query("ALTER TABLE elsewhere RENAME TO decisions")
  expect(recorder.status).toMatchObject({ written: 0, lost: { sinkFailed: 4 } })
  expect(warnings).toEqual([expect.stringContaining('relation "decisions" does not exist')])
})
