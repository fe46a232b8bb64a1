import type { CounterBackend, CounterChange, KeptCounter } from "@sluice/core/stores"
import type { Pool, PoolClient } from "pg"

const LOCK = `
  SELECT pg_advisory_xact_lock(hashtextextended(key, 0))
  FROM unnest($1::text[]) WITH ORDINALITY AS asked (key, nth) ORDER BY nth`
const READ = `
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now, (
    SELECT jsonb_object_agg(key, counter) FROM counters WHERE key = ANY ($1)
  ) AS found`
const WRITE = `
  INSERT INTO counters (key, counter, expires_at_ms) VALUES ($1, $2, $3)
  ON CONFLICT (key) DO UPDATE
  SET counter = excluded.counter, expires_at_ms = excluded.expires_at_ms`

/** Creates a back end for `transactionalStore` that keeps counters in PostgreSQL. */
export function postgresCounters(pool: Pool): CounterBackend {
  return {
    async transact(keys, change) {
      const client = await pool.connect()
      // Without a listener, a lost connection would end the process.
      client.on("error", ignore)
      try {
        // A stricter level would read a snapshot from before the lock.
        await client.query("BEGIN ISOLATION LEVEL READ COMMITTED")
        // Lock by key, because a new counter does not have a row yet.
        await client.query(LOCK, [keys])
        const { rows } = await client.query<Found>(READ, [keys])
        const { now = Number.NaN, found } = rows[0] ?? {}
        const kept = keys.map((key) => found?.[key])
        for (const each of change(kept, now)) await write(client, each)
        await client.query("COMMIT")
        client.release()
      } catch (error) {
        // Discard the connection, because it may be in a transaction.
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
