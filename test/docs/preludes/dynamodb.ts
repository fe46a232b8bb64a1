import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { dynamoDBRegistry } from "@sluice/core/dynamodb"
import { onTestFinished } from "vitest"
import { startDynamoDB } from "../../servers/dynamodb.ts"
import * as express from "./express.ts"

/** What blocks take for granted that are about rules in DynamoDB: an Express app, and a table "rules" with nothing in it. */
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
