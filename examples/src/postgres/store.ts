import type { CounterBackend, CounterChange, KeptCounter } from "@sluice/core"
import type { Pool, PoolClient } from "pg"

/** Counters in a table of PostgreSQL. */
export function postgresCounters(pool: Pool): CounterBackend {
  return {
    async transact(keys, change) {
      const client = await pool.connect()
      // A connection that is lost meanwhile is an event, too, which would end the process; what was asked rejects.
      client.on("error", ignore)
      try {
        // Whatever the default is: what is read has to be what is there once the lock is held.
        await client.query("BEGIN ISOLATION LEVEL READ COMMITTED")
        // One transaction at a time for each counter, one that has no row yet too.
        await client.query(LOCK, [keys])
        const { rows } = await client.query<Found>(READ, [keys])
        const { now = Number.NaN, found } = rows[0] ?? {}
        const kept = keys.map((key) => found?.[key])
        for (const each of change(kept, now)) await write(client, each)
        await client.query("COMMIT")
        client.release()
      } catch (error) {
        // It may be in the middle of a transaction: the pool makes another one.
        client.release(true)
        throw error
      } finally {
        client.off("error", ignore)
      }
    },
  }
}

function ignore(): void {}

interface Found {
  readonly now: number
  readonly found: Readonly<Record<string, KeptCounter>> | null
}

async function write(client: PoolClient, { key, counter }: CounterChange): Promise<void> {
  if (counter === undefined) await client.query("DELETE FROM counters WHERE key = $1", [key])
  else await client.query(WRITE, [key, counter, counter.expiresAtMs])
}

const LOCK = `
  SELECT pg_advisory_xact_lock(hashtextextended(key, 0))
  FROM unnest($1::text[]) WITH ORDINALITY AS asked (key, nth) ORDER BY nth`
const READ = `
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now,
    (SELECT jsonb_object_agg(key, counter) FROM counters WHERE key = ANY ($1)) AS found`
const WRITE = `
  INSERT INTO counters (key, counter, expires_at_ms) VALUES ($1, $2, $3)
  ON CONFLICT (key) DO UPDATE SET counter = excluded.counter, expires_at_ms = excluded.expires_at_ms`
