import { CreateTableCommand, type DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { type DynamoDBServer, startDynamoDB } from "./dynamodb.ts"
import { type Fault, type FaultProxy, startFaultProxy } from "./fault-proxy.ts"
import { until } from "./until.ts"

let server: DynamoDBServer
let proxy: FaultProxy
let client: DynamoDBClient
beforeAll(async () => {
  server = await startDynamoDB()
  proxy = await startFaultProxy(server)
  client = server.client({ endpoint: proxy.endpoint, maxAttempts: 1 })
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})
beforeEach(() => {
  proxy.fault = undefined
  proxy.calls.length = 0
})

let made = 0
const create = (timeoutMs = 5_000): Promise<unknown> => {
  made += 1
  return client.send(
    new CreateTableCommand({
      TableName: `table-${made}`,
      BillingMode: "PAY_PER_REQUEST",
      KeySchema: [{ AttributeName: "service_id", KeyType: "HASH" }],
      AttributeDefinitions: [{ AttributeName: "service_id", AttributeType: "S" }],
    }),
    { abortSignal: AbortSignal.timeout(timeoutMs) },
  )
}
const exists = async (): Promise<boolean> =>
  (await server.client().send(new ListTablesCommand({}))).TableNames?.includes(`table-${made}`) === true

it("the fault proxy forwards calls and records their actions", async () => {
  await create()
  expect(await exists()).toBe(true)
  expect(proxy.calls).toEqual(["CreateTable"])
})

it.each<[Fault, { name?: string; code?: string }]>([
  ["throttle", { name: "ProvisionedThroughputExceededException" }],
  ["deny", { name: "AccessDeniedException" }],
  ["fail", { name: "InternalServerError" }],
  ["reset", { code: "ECONNRESET" }],
  ["hang", { name: "AbortError" }],
])("the fault proxy injects the fault %s, and does not forward the call", async (fault, error) => {
  proxy.fault = () => fault
  await expect(create(fault === "hang" ? 100 : undefined)).rejects.toMatchObject(error)
  expect(await exists()).toBe(false)
})

it.each<[Fault, { name?: string; code?: string }]>([
  ["lose", { code: "ECONNRESET" }],
  ["silence", { name: "AbortError" }],
  ["cut", {}],
])("the fault proxy forwards a call and breaks the response: %s", async (fault, error) => {
  proxy.fault = () => fault
  await expect(create(fault === "silence" ? 100 : undefined)).rejects.toMatchObject(error)
  await until("the server has carried it out", exists)
})

it("the fault proxy delays the calls of a chosen action", async () => {
  proxy.fault = (action) => (action === "ListTables" ? { delayMs: 40 } : undefined)
  const start = performance.now()
  await client.send(new ListTablesCommand({}))
  expect(performance.now() - start).toBeGreaterThanOrEqual(39)
})
