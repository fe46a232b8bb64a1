import {
  type AttributeValue,
  BatchWriteItemCommand,
  CreateTableCommand,
  DeleteItemCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  PutItemCommand,
  ResourceNotFoundException,
  ScanCommand,
} from "@aws-sdk/client-dynamodb"
import type { StoredRules } from "@sluice/contracts"
import { until } from "../servers/until.ts"

/** An item in the SDK's form. */
export type Item = Record<string, AttributeValue>

/** Creates a table with this key, without the code under test. Resolves when it can be written to. */
export async function makeTable(
  client: DynamoDBClient,
  tableName: string,
  key = "service_id",
  type: "S" | "N" | "B" = "S",
): Promise<void> {
  await client.send(
    new CreateTableCommand({
      TableName: tableName,
      BillingMode: "PAY_PER_REQUEST",
      KeySchema: [{ AttributeName: key, KeyType: "HASH" }],
      AttributeDefinitions: [{ AttributeName: key, AttributeType: type }],
    }),
  )
  await until("the table is there", async () => (await statusOf(client, tableName)) === "ACTIVE")
}

/** Deletes a table. Resolves when the table no longer exists. */
export async function dropTable(client: DynamoDBClient, tableName: string): Promise<void> {
  await client.send(new DeleteTableCommand({ TableName: tableName }))
  await until("the table is gone", async () => (await statusOf(client, tableName)) === undefined)
}

async function statusOf(client: DynamoDBClient, tableName: string): Promise<string | undefined> {
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }))
    return Table?.TableStatus
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return undefined
    throw error
  }
}

/** Puts an item, without the code under test. */
export async function putItem(client: DynamoDBClient, tableName: string, item: Item): Promise<void> {
  await client.send(new PutItemCommand({ TableName: tableName, Item: item }))
}

/** Creates a table with `count` items, of services "service-0", "service-1" …, with these attributes. */
export async function fillTable(
  client: DynamoDBClient,
  tableName: string,
  count: number,
  item: (index: number) => Item,
): Promise<void> {
  await makeTable(client, tableName)
  await putServices(client, tableName, count, item)
}

/** Puts the items of services "service-0", "service-1" …, with these attributes. */
export async function putServices(
  client: DynamoDBClient,
  tableName: string,
  count: number,
  item: (index: number) => Item,
): Promise<void> {
  for (let start = 0; start < count; start += 25) {
    const indexes = Array.from({ length: Math.min(25, count - start) }, (_, i) => start + i)
    const requests = indexes.map((index) => ({
      PutRequest: { Item: { service_id: { S: `service-${index}` }, ...item(index) } },
    }))
    await client.send(new BatchWriteItemCommand({ RequestItems: { [tableName]: requests } }))
  }
}

/** Removes all items of a table with the default key, except the items of some services. */
export async function emptyTable(
  client: DynamoDBClient,
  tableName: string,
  { but = [] }: { readonly but?: readonly string[] } = {},
): Promise<void> {
  const { Items = [] } = await client.send(new ScanCommand({ TableName: tableName }))
  for (const { service_id } of Items) {
    if (service_id?.S === undefined || but.includes(service_id.S)) continue
    await client.send(new DeleteItemCommand({ TableName: tableName, Key: { service_id } }))
  }
}

/** Returns the attribute of a plain value. The conversion is independent of the code under test. */
export function attribute(value: unknown): AttributeValue {
  if (typeof value === "string") return { S: value }
  if (typeof value === "number") return { N: `${value}` }
  if (typeof value === "boolean") return { BOOL: value }
  if (value === null) return { NULL: true }
  if (Array.isArray(value)) return { L: value.map(attribute) }
  return { M: itemOf(value as object) }
}

/** Returns the item of a document. */
export function itemOf(document: object | StoredRules): Item {
  return Object.fromEntries(Object.entries(document).map(([name, value]) => [name, attribute(value)]))
}
