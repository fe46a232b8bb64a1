import { DeleteTableCommand, DescribeTableCommand } from "@aws-sdk/client-dynamodb"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { RuleSourceError } from "../../packages/core/src/ground/errors.ts"
import { dynamoDBRegistry, openRegistry } from "../../packages/dynamodb/src/dynamodb-registry.ts"
import { type DynamoDBServer, ENGINES, startDynamoDB } from "../servers/dynamodb.ts"
import { startFaultProxy } from "../servers/fault-proxy.ts"
import { dropTable, makeTable } from "./tables.ts"

const tableName = "rules"

describe.each(ENGINES.filter(({ missing }) => missing === undefined))(
  "createTable on $engine",
  ({ engine }) => {
    let server: DynamoDBServer
    beforeEach(async () => {
      server = await startDynamoDB(engine, { createTableMs: 150 })
    })
    afterEach(() => server.stop())

    it("creates a table with on-demand billing, and resolves when the table is ready", async () => {
      const client = server.client()
      const registry = dynamoDBRegistry({ client, tableName })
      await registry.createTable()
      const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }))
      expect(Table).toMatchObject({
        TableStatus: "ACTIVE",
        BillingModeSummary: { BillingMode: "PAY_PER_REQUEST" },
        KeySchema: [{ AttributeName: "service_id", KeyType: "HASH" }],
        AttributeDefinitions: [{ AttributeName: "service_id", AttributeType: "S" }],
      })
      await registry.register("checkout", [{ limit: 5, window: "1m" }])
    })

    it("creates a table with the requested key", async () => {
      const client = server.client()
      await dynamoDBRegistry({ client, tableName, keyType: "N" }).createTable()
      await dynamoDBRegistry({ client, tableName: "other", keyName: "pk", keyType: "S" }).createTable()
      const keys = async (TableName: string) =>
        (await client.send(new DescribeTableCommand({ TableName }))).Table?.AttributeDefinitions
      expect(await keys(tableName)).toEqual([{ AttributeName: "service_id", AttributeType: "N" }])
      expect(await keys("other")).toEqual([{ AttributeName: "pk", AttributeType: "S" }])
    })

    it("accepts an existing table, and a table that another caller creates at the same time", async () => {
      const client = server.client()
      await Promise.all([1, 2, 3].map(() => dynamoDBRegistry({ client, tableName }).createTable()))
      await dynamoDBRegistry({ client, tableName }).createTable()
      await makeTable(client, "numbers", "pk", "N")
      await dynamoDBRegistry({ client, tableName: "numbers" }).createTable()
    })

    it("reports that the existing table's key differs from the requested key", async () => {
      const client = server.client()
      await makeTable(client, "numbers", "pk", "N")
      for (const options of [{ keyType: "N" }, { keyName: "pk", keyType: "S" }] as const) {
        const creating = dynamoDBRegistry({ client, tableName: "numbers", ...options }).createTable()
        await expect(creating).rejects.toThrow(RuleSourceError)
        await expect(creating).rejects.toThrow(
          /^DynamoDB table "numbers" cannot be created: the table exists, but its key is "pk" of type N, not "/,
        )
      }
    })
  },
)

describe("createTable", () => {
  let server: DynamoDBServer
  afterEach(() => server.stop())

  it("checks the table at growing intervals and gives up after two minutes", async () => {
    server = await startDynamoDB("dynalite", { createTableMs: 60_000 })
    const waits: number[] = []
    const registry = openRegistry({ client: server.client(), tableName }, async (ms) => void waits.push(ms))
    await expect(registry.createTable()).rejects.toThrow(
      /cannot be created: the table is not ready after 12\d(\.\d)? seconds; check its status in the AWS console$/,
    )
    expect(waits.slice(0, 6)).toEqual([100, 200, 400, 800, 1_000, 1_000])
  })

  it("stops when the caller's signal aborts", async () => {
    server = await startDynamoDB("dynalite", { createTableMs: 60_000 })
    const giveUp = new AbortController()
    const registry = dynamoDBRegistry({ client: server.client(), tableName })
    const creating = registry.createTable({ signal: giveUp.signal })
    setTimeout(() => giveUp.abort(new Error("enough")), 50)
    await expect(creating).rejects.toThrow("enough")
    await expect(registry.createTable({ signal: AbortSignal.abort(null) })).rejects.toBe(null)
  })

  it("waits for a table that some replicas do not find yet", async () => {
    server = await startDynamoDB()
    const direct = server.client()
    const proxy = await startFaultProxy(server)
    let looks = 0
    const registry = openRegistry(
      { client: server.client({ endpoint: proxy.endpoint }), tableName },
      async () => {
        await makeTable(direct, tableName)
      },
    )
    // DescribeTable does not find the new table, as if an outdated replica responded.
    proxy.before = async (action) => {
      if (action === "DescribeTable" && ++looks === 1) {
        await dropTable(direct, tableName)
      }
    }
    await registry.createTable()
    expect(looks).toBe(2)
    await proxy.stop()
  })

  it.each(["CreateTable", "DescribeTable"])("explains the error if %s is not permitted", async (denied) => {
    server = await startDynamoDB()
    const proxy = await startFaultProxy(server)
    proxy.fault = (action) => (action === denied ? "deny" : undefined)
    const registry = dynamoDBRegistry({ client: server.client({ endpoint: proxy.endpoint }), tableName })
    await expect(registry.createTable()).rejects.toThrow(
      new RegExp(
        `DynamoDB table "rules" cannot be created: not permitted .* allow dynamodb:${denied} on the table$`,
      ),
    )
    await proxy.stop()
  })

  it("reports that the table is being deleted", async () => {
    server = await startDynamoDB("dynalite", { deleteTableMs: 60_000 })
    const client = server.client()
    await makeTable(client, tableName)
    await client.send(new DeleteTableCommand({ TableName: tableName }))
    await expect(dynamoDBRegistry({ client, tableName }).createTable()).rejects.toThrow(
      "the status of the table is DELETING; wait until that ends, or use another name",
    )
  })
})
