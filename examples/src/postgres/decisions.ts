import type { DecisionSink } from "@sluice/recording"
import type { Pool } from "pg"

/** `admitted` is the verdict on the request, and `refused` the verdict of the rule. */
export const TABLE = `
  CREATE TABLE decisions (
    at timestamptz NOT NULL, service text NOT NULL, policy text NOT NULL, client text NOT NULL, cost bigint NOT NULL,
    admitted boolean NOT NULL, refused boolean NOT NULL, "limit" bigint NOT NULL, remaining bigint,
    shadow boolean NOT NULL, degraded boolean NOT NULL
  );
  CREATE INDEX ON decisions (service, policy, client, at)`

/** Creates a sink for `recordDecisions` that writes a row for each decision and rule to PostgreSQL. */
export function postgresDecisions(pool: Pool): DecisionSink {
  return async (records) => {
    await pool.query(INSERT, [JSON.stringify(records, withoutNul)])
  }
}

/** Replaces NUL, which a client may send, and which PostgreSQL rejects. */
const withoutNul = (_key: string, value: unknown): unknown =>
  typeof value === "string" ? value.replaceAll("\0", "\ufffd") : value

const INSERT = `
  INSERT INTO decisions
  SELECT to_timestamp("timeMs" / 1000.0), service, rule.policy, partition, cost,
    request.allowed, NOT rule.allowed, "limit", remaining, shadow, degraded
  FROM jsonb_to_recordset($1) AS request (
      "timeMs" float8, service text, allowed bool, degraded bool, checks jsonb),
    jsonb_to_recordset(checks) AS rule (policy text, partition text, cost bigint,
      allowed bool, "limit" bigint, remaining bigint, shadow bool)`

/** The units that each client has used in January. A shadow rule that would have refused takes no units. */
export const USAGE = `
  SELECT client, sum(cost) AS units FROM decisions
  WHERE service = 'shop' AND policy = 'per-client' AND admitted AND NOT refused
    AND at >= '2024-01-01Z' AND at < '2024-02-01Z'
  GROUP BY client ORDER BY client`
