import { dynamoDBRules } from "@sluice/dynamodb"
import { itemOf, makeTable, putServices } from "../../test/dynamodb/tables.ts"
import { ENGINES, startDynamoDB } from "../../test/servers/dynamodb.ts"
import type { Changeable } from "./book-costs.ts"
import { documentOf } from "./stored-services.ts"

/** The reason why DynamoDB cannot run in its own process on this machine. Undefined if DynamoDB can run. */
export const missingEngine: string | undefined = ENGINES.find(({ engine }) => engine === "dynoxide")?.missing

/**
 * Starts a DynamoDB server with a table that contains the rules of `count` services, equal to the rules in the list.
 */
export async function startDynamoDBServices(
  count: number,
  pollMs: number,
): Promise<Changeable & { stop(): Promise<void> }> {
  const server = await startDynamoDB("dynoxide")
  const client = server.client()
  const tableName = "rules"
  const write = (version: number, firstLimit: number): Promise<void> =>
    putServices(client, tableName, count, (index) =>
      itemOf(documentOf(`service-${index}`, version, firstLimit + index)),
    )
  await makeTable(client, tableName)
  await write(1, 5)
  return {
    source: dynamoDBRules({ client, tableName, pollMs, timeoutMs: 10_000 }),
    change: (round) => write(2 + round, 7 + round),
    stop: () => server.stop(),
  }
}
