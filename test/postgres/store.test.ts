import { type ExpiringStore, storeContract, storeExpiryContract } from "@sluice/contracts"
import { type Clock, createLimiter, type Store } from "@sluice/core"
import { transactionalStore } from "@sluice/core/stores"
import { manualClock } from "@sluice/core/testing"
import type { Pool } from "pg"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { postgresCounters } from "../../examples/src/postgres/store.ts"
import { runContract } from "../contracts/run-contract.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { openPool, type PostgresServer, startPostgres } from "../servers/postgres.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { everyNth } from "../test-length.ts"

let server: PostgresServer
const pools: Pool[] = []

function connect(): Pool {
  const pool = openPool(server, 4)
  pools.push(pool)
  return pool
}

let pool: Pool
beforeAll(async () => {
  server = await startPostgres()
  pool = connect()
  const [table] = blocksTestedBy("test/postgres/store.test.ts", "docs/extend/stores.md", 2)
  await pool.query(table?.text as string)
})
// Use DELETE, because TRUNCATE creates a file and takes longer than most tests.
const clear = () => pool.query("DELETE FROM counters")
afterEach(clear)
afterAll(async () => {
  await Promise.all(pools.map((each) => each.end()))
  await server?.stop()
})

/** Creates the store of the guide with a test clock instead of the database's time. */
function storeBy(clock: Clock): Store {
  const { transact } = postgresCounters(pool)
  return transactionalStore({
    transact: (keys, change) => transact(keys, (found) => change(found, clock.now())),
  })
}

// All other behaviors are tested on a table in memory, in test/transactional-store.contract.test.ts.
runContract("counters in PostgreSQL", everyNth(4, storeContract({ create: emptied, effort: 0.05 })))

/** Empties the table, because one behavior in the contract compares several stores. */
async function emptied(clock: Clock): Promise<Store> {
  await clear()
  return storeBy(clock)
}

runContract("counters in PostgreSQL", storeExpiryContract({ create: expiring }))

function expiring(): ExpiringStore {
  const clock = manualClock()
  const [, cleaning] = blocksTestedBy("test/postgres/store.test.ts", "docs/extend/stores.md", 2)
  const sql = cleaning?.text.replace("now()", "to_timestamp($1 / 1000.0)") as string
  return { store: storeBy(clock), clock, forget: async () => void (await pool.query(sql, [clock.now()])) }
}

describe("a limiter with counters in PostgreSQL", () => {
  const LIMITS = { limit: 10, window: "1 hour", service: "shop", storeTimeoutMs: 60_000 } as const
  const ALICE = { remoteAddress: "192.0.2.1" }

  it("shares its counters with a concurrent limiter, and uses the database's clock", async () => {
    const limiters = [pool, connect()].map((each) =>
      createLimiter({ ...LIMITS, store: transactionalStore(postgresCounters(each)) }),
    )
    const asked = limiters.flatMap((limiter) => Array.from({ length: 30 }, () => limiter.decide(ALICE)))
    const decisions = await Promise.all(asked)
    expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(10)
    const { rows } = await pool.query(
      "SELECT expires_at_ms::float8 - extract(epoch FROM now()) * 1000 AS left FROM counters",
    )
    expect(rows).toHaveLength(1)
    expect(Number(rows[0].left)).toBeGreaterThan(3_600_000)
    expect(Number(rows[0].left)).toBeLessThanOrEqual(7_200_000)
  })

  it("keeps deciding when its connection is lost during a transaction, and later counts in PostgreSQL again", async () => {
    const logger = { warn() {}, error() {} }
    const proxy = await startProxy(server)
    const lost = openPool(proxy, 4)
    lost.on("error", () => undefined)
    const limiter = createLimiter({
      ...LIMITS,
      logger,
      // The server may notice the end of the transaction only later. A decision does not wait until the server
      // notices it.
      storeTimeoutMs: 5_000,
      store: transactionalStore(postgresCounters(lost)),
    })
    expect(await limiter.decide(ALICE)).toMatchObject({ degraded: false, remaining: 9 })
    proxy.pause("replies")
    const asked = limiter.decide(ALICE)
    await until("it is under way", () => lost.idleCount === 0)
    proxy.cut()
    expect(await asked).toMatchObject({ allowed: true, degraded: true })
    proxy.resume("replies")
    await until("it is asked again", async () => !(await limiter.decide(ALICE)).degraded)
    await lost.end()
    await limiter.close()
    await proxy.close()
  })

  it("keeps deciding while the table is missing, and counts in the table again when it exists", async () => {
    const logger = { warn() {}, error() {} }
    const limiter = createLimiter({ ...LIMITS, logger, store: transactionalStore(postgresCounters(pool)) })
    await pool.query("ALTER TABLE counters RENAME TO elsewhere")
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, degraded: true })
    await pool.query("ALTER TABLE elsewhere RENAME TO counters")
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, degraded: false, remaining: 9 })
  })
})
