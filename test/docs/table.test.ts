import { PutItemCommand, type PutItemCommandInput } from "@aws-sdk/client-dynamodb"
import { createLimiter } from "@sluice/core"
import { dynamoDBRegistry, dynamoDBRules } from "@sluice/dynamodb"
import { expect, it, onTestFinished } from "vitest"
import { startDynamoDB } from "../servers/dynamodb.ts"
import { blocksTestedBy } from "./shown.ts"

const tableName = "rules"
const [item] = blocksTestedBy("test/docs/table.test.ts", "docs/service/dynamodb.md", 1)
type Item = NonNullable<PutItemCommandInput["Item"]>

it("docs/service/dynamodb.md shows an item with rules, which stay in force when an invalid rule is added", async () => {
  const server = await startDynamoDB()
  onTestFinished(() => server.stop())
  const client = server.client()
  const registry = dynamoDBRegistry({ client, tableName })
  await registry.createTable()
  const Item = JSON.parse(item?.text ?? "") as Item
  await client.send(new PutItemCommand({ TableName: tableName, Item }))
  const stored = await registry.get("checkout")
  expect(stored).toMatchObject({ version: 7, problems: [] })
  expect(stored?.rules).toEqual([{ name: "per-user", field: "user_id", limit: 5, window: "1 minute" }])

  const limiter = createLimiter({
    rules: dynamoDBRules({ client, tableName }),
    service: "checkout",
    onRulesMissing: "deny",
    fields: { user_id: () => undefined },
    logger: { warn() {}, error() {} },
  })
  onTestFinished(() => limiter.close())
  await limiter.ready()
  const wrong = {
    M: { name: { S: "monthly" }, rate: { M: { requests_per_unit: { N: "9" }, unit: { S: "month" } } } },
  }
  const rules = { L: [...(Item.rules?.L ?? []), wrong] }
  await client.send(new PutItemCommand({ TableName: tableName, Item: { ...Item, rules } }))
  await expect(limiter.refresh()).rejects.toThrow("month")
  expect(limiter.rules).toMatchObject({ isRejected: true, version: 7 })
})
