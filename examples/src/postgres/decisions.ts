import type { DecisionSink } from "@sluice/recording"
import type { Pool } from "pg"

/** Creates a sink for `recordDecisions` that writes a row for each decision and rule to a PostgreSQL table. */
export function postgresDecisions(pool: Pool): DecisionSink {
  return async (records) => {
    const rows = records.flatMap(({ timeMs, service, allowed, degraded, checks }) =>
      checks.map((check) => ({
        time_ms: timeMs,
        service,
        policy: check.policy,
        // PostgreSQL has no NUL in texts, but a client may send one.
        client: check.partition.replaceAll("\0", "\ufffd"),
        cost: check.cost,
        admitted: allowed,
        refused: !check.allowed,
        limit: check.limit,
        remaining: check.remaining,
        shadow: check.shadow,
        degraded,
      })),
    )
    await pool.query(INSERT, [JSON.stringify(rows)])
  }
}

const INSERT = `
  INSERT INTO decisions (at, service, policy, client, cost, admitted, refused, "limit", remaining, shadow, degraded)
  SELECT to_timestamp(time_ms / 1000.0), service, policy, client, cost, admitted, refused, "limit", remaining, shadow, degraded
  FROM jsonb_to_recordset($1) AS given (
    time_ms float8, service text, policy text, client text, cost bigint, admitted boolean, refused boolean,
    "limit" bigint, remaining bigint, shadow boolean, degraded boolean)`
