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

/** Poll intervals and timeout for a new table. Creating a table takes several seconds. */
const FIRST_LOOK_MS = 100
const LAST_LOOK_MS = 1_000
const PATIENCE_MS = 120_000

/** Waits for `ms` milliseconds, or rejects when the signal is aborted. */
export type Wait = (ms: number, signal?: AbortSignal) => Promise<void>

/**
 * Creates the table with on-demand billing unless it exists. Resolves when the table is ready. The table's key is
 * `given`, or else a string named `service_id`. Without `given`, an existing table may have any key that rules can
 * use. Rejects with RuleSourceError if the table's key differs, if the table cannot be created, or if it is not ready
 * after two minutes.
 */
export async function createTable(
  table: Table,
  given: TableKey | undefined,
  signal: AbortSignal | undefined,
  // The timer must keep the process alive between two polls, because nothing else does.
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
    // Continue if the table already exists. Another process may have just created it.
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

/** Returns the status of the table. Rejects if the table is ready, but its key differs from the given key. */
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
      // DynamoDB may not find a table that was just created.
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
