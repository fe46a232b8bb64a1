import type { DecisionSink } from "@sluice/recording"
import type { Pool } from "pg"

/**
 * `admitted` is the verdict on the request, and `refused` the verdict of the rule. Both are NULL in the row of a later
 * change. `starts` and `ends` are the calendar period of a rule with `per`. `granted` are the units that were granted by
 * then, and in the row of a grant the units that it adds.
 */
export const TABLE = `
  CREATE TABLE decisions (
    id text NOT NULL, at timestamptz NOT NULL, service text NOT NULL, policy text NOT NULL, client text NOT NULL,
    kind text NOT NULL, taken bigint NOT NULL, granted bigint NOT NULL, starts timestamptz, ends timestamptz,
    cost bigint, admitted boolean, refused boolean, "limit" bigint, remaining bigint, shadow boolean,
    degraded boolean NOT NULL, PRIMARY KEY (id, policy)
  );
  CREATE INDEX ON decisions (service, policy, starts, client)`

/**
 * Creates a sink for `recordDecisions` that writes a row for each record and rule to PostgreSQL. A batch may be written
 * again, because a record that the table contains is left out.
 */
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
  SELECT id, to_timestamp("timeMs" / 1000.0), service, rule.policy, partition, kind, taken, coalesce(added, granted, 0),
    to_timestamp("startMs" / 1000.0), to_timestamp("endMs" / 1000.0), cost, request.allowed, NOT rule.allowed,
    "limit", remaining, shadow, degraded
  FROM jsonb_to_recordset($1) AS request (
      id text, "timeMs" float8, service text, kind text, allowed bool, degraded bool, checks jsonb),
    jsonb_to_recordset(checks) AS rule (policy text, partition text, taken bigint, added bigint,
      granted bigint, "startMs" float8, "endMs" float8, cost bigint, allowed bool, "limit" bigint, remaining bigint, shadow bool)
  ON CONFLICT DO NOTHING`

/**
 * The units that each client has used in the month of the rule that begins in January, and how many more it was granted.
 * The records contain the beginning of each client's month, in the rule's time zone and by the client's anchor. Grants
 * of another process without a recorder, such as the command line, are known from the latest decision.
 */
export const USAGE = `
  SELECT client, (starts AT TIME ZONE 'Europe/Berlin')::date::text AS month, sum(taken) AS used,
    greatest(0, sum(granted) FILTER (WHERE kind = 'grant'), (array_agg(granted ORDER BY at DESC)
      FILTER (WHERE kind = 'decision' AND NOT degraded))[1]) AS granted,
    sum(taken) FILTER (WHERE degraded) AS without_store
  FROM decisions
  WHERE service = 'shop' AND policy = 'monthly' AND starts >= timestamp '2024-01-01' AT TIME ZONE 'Europe/Berlin'
    AND starts < timestamp '2024-02-01' AT TIME ZONE 'Europe/Berlin'
  GROUP BY client, starts ORDER BY client, starts`
