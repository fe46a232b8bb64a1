import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { dynamoDBRules } from "@sluice/dynamodb"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"
import { type Item, itemOf, makeTable, putItem } from "../dynamodb/tables.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { inMemoryAndRedis, MINUTE, START_MS } from "./example.ts"

// The documents' item of a service with 5 requests a minute for each user, in every spelling.
// docs/inside/worked-examples.md lists the items by the beginning of their title.

const MESSAGE = "retry-with-exponential-backoff"
const OLD = { field: "user_id", rate: { requestsPerUnit: 5, unit: "minute" }, errorMessage: MESSAGE }
const NEW = {
  field: "user_id",
  rate: { requests_per_unit: 5, unit: "minute" },
  request_rejection_message: MESSAGE,
}

let server: DynamoDBServer
let client: DynamoDBClient
beforeAll(async () => {
  server = await startDynamoDB()
  client = server.client()
  await makeTable(client, "by-number", "service_id", "N")
  await makeTable(client, "by-name", "Service_id", "S")
})
afterAll(() => server?.stop())

let services = 0

inMemoryAndRedis((open) => {
  it.each<[string, Item]>([
    ["one rule", itemOf({ rules: OLD })],
    ["a list of rules", itemOf({ rules: [OLD] })],
    ["the attribute rule", itemOf({ rule: OLD })],
    ["the JSON text of a rule", itemOf({ rule: JSON.stringify(OLD) })],
    ["names in snake_case", itemOf({ version: 7, rules: [{ name: "per-user", ...NEW }] })],
  ])("item shapes: %s, stored under a number or a name, limits each user", async (_shape, item) => {
    for (const [tableName, key, type] of [
      ["by-number", "service_id", "N"],
      ["by-name", "Service_id", "S"],
    ] as const) {
      const service = `${++services}`
      await putItem(client, tableName, { [key]: type === "N" ? { N: service } : { S: service }, ...item })
      const clock = manualClock(START_MS)
      const limiter = createLimiter<{ readonly user: string }>({
        service,
        rules: dynamoDBRules({ client, tableName }),
        onRulesMissing: "deny",
        fields: { user_id: ({ user }) => user },
        store: open(clock),
        storeTimeoutMs: 20_000,
        clock,
      })
      onTestFinished(() => limiter.close())
      await limiter.ready()
      for (let left = 4; left >= 0; left--) {
        expect(await limiter.decide({ user: "ada" })).toMatchObject({ allowed: true, remaining: left })
      }
      expect(await limiter.decide({ user: "ada" })).toMatchObject({
        allowed: false,
        rejectionMessage: MESSAGE,
        retryAfterMs: MINUTE + 1,
      })
      expect(await limiter.decide({ user: "bob" })).toMatchObject({ allowed: true, remaining: 4 })
    }
  })
})
