import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { createLimiter, type Limiter, type Rule } from "@sluice/core"
import { dynamoDBRules } from "@sluice/core/dynamodb"
import { redisStore } from "@sluice/core/redis"
import { rateLimit } from "@sluice/express"
import express, { type Express, type Request } from "express"
import type { Redis } from "ioredis"

/** What the owner of the service registers: 5 a minute for a user, and 10 a day for all of them together. */
export const RULES: readonly Rule[] = [
  {
    name: "per-user",
    field: "user_id",
    limit: 5,
    window: "1 minute",
    rejectionMessage: "retry-with-exponential-backoff",
  },
  { name: "daily", field: "service", limit: 10, window: "1 day", rejectionMessage: "exhausted-daily-limit" },
]

/** What the app works with; it made them and closes them. */
export interface Surroundings {
  readonly dynamoDB: DynamoDBClient
  readonly redis: Redis
  readonly tableName: string
  readonly service: string
}

/** An app whose rules are in DynamoDB and whose counters are in Redis: any number of instances enforce the same limits. */
export async function createApp({
  dynamoDB,
  redis,
  tableName,
  service,
}: Surroundings): Promise<{ readonly app: Express; readonly limiter: Limiter<Request> }> {
  const limiter = createLimiter<Request>({
    service,
    rules: dynamoDBRules({ client: dynamoDB, tableName, pollMs: 2_000 }),
    // Until the table has been read once, requests get 503.
    onRulesMissing: "deny",
    store: redisStore({ client: redis }),
    // Not the 50 ms of a service: what is shown are counts, and Redis may be on a machine that is busy.
    storeTimeoutMs: 5_000,
    // Stands for your authentication.
    fields: { user_id: (req) => req.get("x-user-id") },
  })
  // A server that cannot read its rules does not start.
  await limiter.ready()

  const app = express()
  app.use(rateLimit({ limiter }))
  app.get("/orders", (_req, res) => void res.json({ orders: [] }))
  return { app, limiter }
}
