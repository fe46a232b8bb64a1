import { setTimeout as delay } from "node:timers/promises"
import { CreateTableCommand, DescribeTableCommand, type TableDescription } from "@aws-sdk/client-dynamodb"
import { causeName, failure, TableError } from "./failure.ts"
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
    const { TableStatus, ...description } = await describe(table, what, signal)
    if (TableStatus === "ACTIVE" || TableStatus === "UPDATING") return requireKey(what, given, description)
    if (TableStatus !== "CREATING" || waitedMs >= PATIENCE_MS) throw stuck(what, TableStatus, waitedMs)
    try {
      await wait(lookMs, signal)
    } catch (error) {
      signal?.throwIfAborted()
      throw error
    }
    waitedMs += lookMs
  }
}

/** Returns DynamoDB's description of the table. A table that was just created may not be known everywhere. */
async function describe(
  table: Table,
  what: string,
  signal: AbortSignal | undefined,
): Promise<TableDescription> {
  try {
    const command = new DescribeTableCommand({ TableName: table.name })
    const call = { what, action: "DescribeTable", signal }
    const { Table = {} } = await table.call(call, (abortSignal) =>
      table.client.send(command, { abortSignal }),
    )
    return Table
  } catch (error) {
    if (causeName(error) === "ResourceNotFoundException") return { TableStatus: "CREATING" }
    throw error
  }
}

function requireKey(what: string, given: TableKey | undefined, description: TableDescription): void {
  try {
    const { name, type } = keyOf(description)
    if (given === undefined || (given.name === name && given.type === type)) return
    const [found, wanted] = [
      `${JSON.stringify(name)} of type ${type}`,
      `${JSON.stringify(given.name)} of type ${given.type}`,
    ]
    throw new TableError(
      `the table exists, but its key is ${found}, not ${wanted}; correct keyName and keyType, or use another table`,
    )
  } catch (error) {
    throw failure({ what, action: "DescribeTable" }, error)
  }
}

function stuck(what: string, status: string | undefined, waitedMs: number): Error {
  const reason =
    status === "CREATING"
      ? `the table is not ready after ${waitedMs / 1000} seconds; check its status in the AWS console`
      : `the status of the table is ${status}; wait until that ends, or use another name`
  return failure({ what, action: "CreateTable" }, new TableError(reason))
}
