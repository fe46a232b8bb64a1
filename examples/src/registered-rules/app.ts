import type { IncomingHttpHeaders } from "node:http"
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { createLimiter, type Limiter, type Rule } from "@sluice/core"
import { dynamoDBRules } from "@sluice/dynamodb"
import { rateLimit } from "@sluice/express"
import { redisStore } from "@sluice/redis"
import express, { type Express, type Request } from "express"
import type { Redis } from "ioredis"

/**
 * The rules that the owner of the service registers: 5 per minute for each user, and 10 per day for all users together.
 */
export const RULES = [
  {
    name: "per-user",
    field: "user_id",
    limit: 5,
    window: "1 minute",
    rejectionMessage: "retry-with-exponential-backoff",
  },
  { name: "daily", field: "service", limit: 10, window: "1 day", rejectionMessage: "exhausted-daily-limit" },
] satisfies readonly Rule[]

/** The clients and names that the app uses. The caller creates the clients and closes them. */
export interface Surroundings {
  readonly dynamoDB: DynamoDBClient
  readonly redis: Redis
  readonly tableName: string
  readonly service: string
}

/**
 * Creates a limiter with its rules in DynamoDB and its counters in Redis. Resolves when the limiter has read the
 * rules.
 */
export async function createSharedLimiter<R extends { readonly headers: IncomingHttpHeaders }>({
  dynamoDB,
  redis,
  tableName,
  service,
}: Surroundings): Promise<Limiter<R>> {
  const limiter = createLimiter<R>({
    service,
    rules: dynamoDBRules({ client: dynamoDB, tableName, pollMs: 2_000 }),
    // Requests receive a 503 until the table has been read for the first time.
    onRulesMissing: "deny",
    store: redisStore({ client: redis }),
    // The timeout is longer than the default of 50 ms, because this example shows exact counts and Redis may run on a
    // busy machine.
    storeTimeoutMs: 5_000,
    // This line stands for your own authentication.
    fields: { user_id: (req) => req.headers["x-user-id"]?.toString() },
  })
  // Do not start a server that cannot read its rules.
  await limiter.ready()
  return limiter
}

/** Creates an app whose limits apply across any number of instances. */
export async function createApp(
  surroundings: Surroundings,
): Promise<{ readonly app: Express; readonly limiter: Limiter<Request> }> {
  const limiter = await createSharedLimiter<Request>(surroundings)
  const app = express()
  app.use(rateLimit({ limiter }))
  app.get("/orders", (_req, res) => void res.json({ orders: [] }))
  return { app, limiter }
}
