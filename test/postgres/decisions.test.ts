import { createLimiter, type Limiter, StoreUnavailableError } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { type DecisionSink, recordDecisions } from "@sluice/recording"
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
      { name: "monthly", field: "ip", limit: 50, per: "month", timeZone: "Europe/Berlin", shadow: true },
      { name: "all", field: "service", limit: 1_000, window: "1 hour", shadow: true },
    ],
  })
  const recorder = recordDecisions(limiter, postgresDecisions(pool), { batchSize: 4, clock, logger })
  return { clock, limiter, recorder, warnings }
}

/** The row of a unit that was given back one millisecond later. */
const CORRECTION = {
  ...{ kind: "correction", taken: -1, ms: START_MS + 1, cost: null, admitted: null, refused: null },
  ...{ limit: null, remaining: null, shadow: null },
}

describe("the decisions table", () => {
  it("contains a row for each decision and rule", async () => {
    const { clock, limiter, recorder } = open()
    const client = { remoteAddress: "192.0.2.7" }
    const decision = await limiter.decide(client, { cost: 5 })
    await limiter.decide(client, { cost: 2 })
    clock.advance(1)
    await limiter.settle(decision, 4)
    await recorder.close()
    const { rows } = await pool.query(
      `SELECT policy, client, kind, cost::int, taken::int, admitted, refused, "limit"::int, remaining::int, shadow, degraded, service,
         extract(epoch FROM at)::float8 * 1000 AS ms
       FROM decisions WHERE policy <> 'monthly' ORDER BY policy DESC, at, taken DESC`,
    )
    const common = { kind: "decision", degraded: false, service: "shop", ms: START_MS }
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
      { ...ofClient, cost: 5, taken: 5, admitted: true, refused: false },
      { ...ofClient, cost: 2, taken: 0, admitted: false, refused: true },
      { ...ofClient, ...CORRECTION },
      { ...ofAll, cost: 5, taken: 5, admitted: true, refused: false },
      { ...ofAll, cost: 2, taken: 0, admitted: false, refused: false },
      { ...ofAll, ...CORRECTION },
    ])
    expect(recorder.status).toMatchObject({ waiting: 0, written: 3 })
  })

  it("can be summed to the units that each client used in a month of the rule's time zone", async () => {
    const { clock, limiter, recorder } = open()
    const [ann, bob] = [{ remoteAddress: "192.0.2.7" }, { remoteAddress: "192.0.2.8" }]
    await limiter.decide(ann, { cost: 4 })
    await limiter.decide(ann, { cost: 3 }) // refused
    const decision = await limiter.decide(ann, { cost: 2 })
    await limiter.settle(decision, 12)
    await limiter.decide(bob)
    const used = await Promise.all([ann, bob].map((client) => limiter.usage(client, { rules: ["monthly"] })))
    // February begins in Berlin an hour earlier than in UTC.
    clock.set(Date.UTC(2024, 0, 31, 23))
    await limiter.decide(bob, { cost: 6 })
    await recorder.close()
    const { rows } = await pool.query(USAGE)
    const january = { month: "2024-01-01", granted: "0", without_store: null }
    expect(rows).toEqual([
      { ...january, client: "192.0.2.7", used: "16" },
      { ...january, client: "192.0.2.8", used: "1" },
    ])
    expect(rows.map((row) => Number(row.used))).toEqual(used.flat().map((one) => one.used))
  })

  it("contains each record once, although a batch is written again", async () => {
    const batches: Parameters<DecisionSink>[0][] = []
    const clock = manualClock(START_MS)
    const limiter = createLimiter({
      service: "shop",
      clock,
      name: "monthly",
      limit: 9,
      per: "month",
      timeZone: "UTC",
    })
    const recorder = recordDecisions(limiter, (batch) => void batches.push(batch), { clock })
    await limiter.decide({ remoteAddress: "192.0.2.7" }, { cost: 3 })
    await recorder.close()
    const sink = postgresDecisions(pool)
    for (const batch of [...batches, ...batches]) await sink(batch)
    expect((await pool.query("SELECT sum(taken) FROM decisions")).rows).toEqual([{ sum: "3" }])
  })

  it("is summed through its index, without a scan of the table", async () => {
    const client = await pool.connect()
    // PostgreSQL would read an empty table faster without the index.
    await client.query("SET enable_seqscan = off")
    const { rows } = await client.query(`EXPLAIN ${USAGE}`)
    await client.query("RESET enable_seqscan")
    client.release()
    expect(JSON.stringify(rows)).toContain("decisions_service_policy_starts_client_idx")
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

const MONTHLY = {
  service: "shop",
  name: "monthly",
  limit: 10,
  per: "month",
  timeZone: "Europe/Berlin",
  field: "account",
  fields: { account: ({ client }: { readonly client: string }) => client },
} as const

describe("takeMissing", async () => {
  const { client: redis, server: redisServer } = await redisForTests()
  const clock = manualClock(START_MS)
  const [limiter, elsewhere] = [1, 2].map(() =>
    createLimiter<{ readonly client: string }>({
      ...MONTHLY,
      ...{ clock, store: redisStore({ client: redis, clock }), storeTimeoutMs: 5_000 },
    }),
  ) as [Limiter<{ readonly client: string }>, Limiter<{ readonly client: string }>]
  afterAll(() => Promise.all([limiter.close(), elsewhere.close()]))

  async function usedBy(client: string): Promise<unknown> {
    const [usage] = await limiter.usage({ client })
    return [usage?.used, usage?.granted]
  }

  it("takes and grants the recorded units that a Redis has lost, and none twice", async () => {
    const recorder = recordDecisions(limiter, postgresDecisions(pool), { clock })
    await limiter.grant({ client: "ann" }, 5)
    // This process has no recorder, so the grant is known from the decision alone.
    await elsewhere.grant({ client: "bob" }, 4)
    await limiter.decide({ client: "ann" }, { cost: 8 })
    await limiter.decide({ client: "ann" }, { cost: 5 })
    const decision = await limiter.decide({ client: "bob" }, { cost: 5 })
    await limiter.settle(decision, 3)
    await redisServer.command("FLUSHALL")
    await limiter.decide({ client: "ann" }, { cost: 1 })
    await recorder.close()
    expect([await usedBy("ann"), await usedBy("bob")]).toEqual([
      [1, 0],
      [0, 0],
    ])

    const { rows } = await pool.query<Usage>(USAGE)
    for (let time = 0; time < 2; time++) {
      await takeMissing(limiter, rows)
      expect([await usedBy("ann"), await usedBy("bob")]).toEqual([
        [14, 5],
        [3, 4],
      ])
    }
  })

  it("uses up the limit of a client that got more than its limit, because Redis had lost its units", async () => {
    await redisServer.command("FLUSHALL")
    await takeMissing(limiter, [{ client: "ann", used: "17", granted: "0" }])
    expect(await usedBy("ann")).toEqual([10, 0])
  })

  it("rejects for a rule without a period", async () => {
    const hourly = createLimiter<Usage>({ limit: 10, window: "1 hour" })
    const rejection = takeMissing(hourly, [{ client: "ann", used: "7", granted: "0" }])
    await expect(rejection).rejects.toThrow("The rule has no period")
    await hourly.close()
  })
})

it("takeMissing rejects while Redis does not respond", async () => {
  const redisServer = await startRedis()
  const redis = new Redis(redisServer.port, redisServer.host)
  redis.on("error", () => {})
  const quiet = { warn() {}, error() {} }
  const limiter = createLimiter<Usage>({ ...MONTHLY, store: redisStore({ client: redis }), logger: quiet })
  await redisServer.stop()
  const rejection = takeMissing(limiter, [{ client: "ann", used: "7", granted: "0" }])
  await expect(rejection).rejects.toBeInstanceOf(StoreUnavailableError)
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
