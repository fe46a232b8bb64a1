import { CreateTableCommand, ListTablesCommand } from "@aws-sdk/client-dynamodb"
import { describe, expect, it } from "vitest"
import { ENGINES, startDynamoDB } from "./dynamodb.ts"

describe.each(ENGINES)("the server $engine", ({ engine, missing }) => {
  it.skipIf(missing !== undefined)(
    `starts empty, shares no tables with another server, and no longer responds after stop()${missing === undefined ? "" : ` (${missing})`}`,
    async () => {
      const [one, other] = [await startDynamoDB(engine), await startDynamoDB(engine)]
      await one.client().send(
        new CreateTableCommand({
          TableName: "rules",
          BillingMode: "PAY_PER_REQUEST",
          KeySchema: [{ AttributeName: "service_id", KeyType: "HASH" }],
          AttributeDefinitions: [{ AttributeName: "service_id", AttributeType: "S" }],
        }),
      )
      const tables = async ({ client }: typeof one) =>
        (await client().send(new ListTablesCommand({}))).TableNames
      expect([await tables(one), await tables(other)]).toEqual([["rules"], []])
      await one.stop()
      await one.stop()
      await expect(fetch(one.endpoint)).rejects.toThrow("fetch failed")
      await other.stop()
    },
  )
})
