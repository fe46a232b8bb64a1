import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { dynamoDBRegistry } from "@sluice/dynamodb"
import { onTestFinished } from "vitest"
import { startDynamoDB } from "../../servers/dynamodb.ts"
import * as express from "./express.ts"

/** The values for blocks about rules in DynamoDB: an Express app, and an empty table "rules". */
export const given = {
  ...express.given,
  async client(): Promise<DynamoDBClient> {
    const server = await startDynamoDB()
    onTestFinished(() => server.stop())
    const client = server.client()
    await dynamoDBRegistry({ client, tableName: "rules" }).createTable()
    return client
  },
} as const

export const serve = express.serve
