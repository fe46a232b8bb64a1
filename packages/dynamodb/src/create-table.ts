import { setTimeout as delay } from "node:timers/promises"
import {
  CreateTableCommand,
  DescribeTableCommand,
  type TableDescription,
  type TableStatus,
} from "@aws-sdk/client-dynamodb"
import { causeName, details, failure, TableError } from "./failure.ts"
import type { Table } from "./table.ts"
import { DEFAULT_KEY, keyOf, type TableKey } from "./table-key.ts"

/** Poll intervals and timeout for a new table. Creating a table takes seconds. */
const FIRST_LOOK_MS = 100
const LAST_LOOK_MS = 1_000
const PATIENCE_MS = 120_000

/** Waits for `ms` milliseconds, or rejects when the signal is aborted. */
export type Wait = (ms: number, signal?: AbortSignal) => Promise<void>

/**
 * Creates the table with on-demand billing unless it exists. Resolves when the table can be used. Its key is the given
 * one, or else a string named `service_id`. Without a given key, an existing table may have any usable key. Rejects
 * with RuleSourceError if the table has another key, cannot be created, or cannot be used after two minutes.
 */
export async function createTable(
  table: Table,
  given: TableKey | undefined,
  signal: AbortSignal | undefined,
  // Keeps the process alive between two polls, because nothing else does.
  wait: Wait = (ms, signal) => delay(ms, undefined, { signal }),
): Promise<void> {
  const what = `DynamoDB table ${JSON.stringify(table.name)} cannot be created`
  const { name, type } = given ?? DEFAULT_KEY
  const create = new CreateTableCommand({
    TableName: table.name,
    BillingMode: "PAY_PER_REQUEST",
    KeySchema: [{ AttributeName: name, KeyType: "HASH" }],
    AttributeDefinitions: [{ AttributeName: name, AttributeType: type }],
  })
  try {
    await table.call({ what, action: "CreateTable", signal }, (abortSignal) =>
      table.client.send(create, { abortSignal }),
    )
  } catch (error) {
    // The table exists already, perhaps because another process has just created it.
    if (causeName(error) !== "ResourceInUseException") throw error
  }
  let waitedMs = 0
  for (let lookMs = FIRST_LOOK_MS; ; lookMs = Math.min(2 * lookMs, LAST_LOOK_MS)) {
    const status = await statusOf(table, what, given, signal)
    if (status === "ACTIVE" || status === "UPDATING") return
    if (status !== "CREATING" || waitedMs >= PATIENCE_MS) throw stuck(what, status, waitedMs)
    try {
      await wait(lookMs, signal)
    } catch (error) {
      signal?.throwIfAborted()
      throw error
    }
    waitedMs += lookMs
  }
}

/** Returns the status of the table. Rejects if it can be used, but has another key than the given one. */
function statusOf(
  table: Table,
  what: string,
  given: TableKey | undefined,
  signal: AbortSignal | undefined,
): Promise<TableStatus | undefined> {
  const command = new DescribeTableCommand({ TableName: table.name })
  return table.call({ what, action: "DescribeTable", signal }, async (abortSignal) => {
    try {
      const { Table = {} } = await table.client.send(command, { abortSignal })
      if (Table.TableStatus === "ACTIVE" || Table.TableStatus === "UPDATING") requireKey(given, Table)
      return Table.TableStatus
    } catch (error) {
      // A table that was just created may not be known everywhere.
      if (details(error).name === "ResourceNotFoundException") return "CREATING"
      throw error
    }
  })
}

function requireKey(given: TableKey | undefined, description: TableDescription): void {
  const { name, type } = keyOf(description)
  if (given === undefined || (given.name === name && given.type === type)) return
  const found = `${JSON.stringify(name)} of type ${type}`
  const wanted = `${JSON.stringify(given.name)} of type ${given.type}`
  throw new TableError(
    `the table exists, but its key is ${found}, not ${wanted}; correct keyName and keyType, or use another table`,
  )
}

function stuck(what: string, status: string | undefined, waitedMs: number): Error {
  const reason =
    status === "CREATING"
      ? `the table is not ready after ${waitedMs / 1000} seconds; check its status in the AWS console`
      : `the status of the table is ${status}; wait until that ends, or use another name`
  return failure({ what, action: "CreateTable" }, new TableError(reason))
}
