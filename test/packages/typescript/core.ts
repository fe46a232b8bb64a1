import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import {
  createLimiter,
  type Decision,
  InvalidOptionError,
  type Limiter,
  manualClock,
  parseRuleDocument,
  RateLimitExceededError,
  type Rule,
  type RuleSource,
  type Store,
} from "@sluice/core"
import { dynamoDBRegistry, dynamoDBRules } from "@sluice/core/dynamodb"
import { redisStore } from "@sluice/core/redis"
import { Cluster, Redis } from "ioredis"
import { createClient, createCluster } from "redis"

interface Job {
  readonly tenant: string
  readonly pages: number
}

const table = { client: new DynamoDBClient({}), tableName: "rules" }
const source: RuleSource = dynamoDBRules(table)
export const registry: ReturnType<typeof dynamoDBRegistry> = dynamoDBRegistry(table)
export const rules: readonly Rule[] = parseRuleDocument({ service_id: "printer", rules: [] })

/** One store for each accepted client. */
export const stores: readonly Store[] = [
  redisStore({ client: new Redis("redis://localhost:6379", { lazyConnect: true }) }),
  redisStore({ client: new Cluster([{ host: "localhost", port: 7000 }], { lazyConnect: true }) }),
  redisStore({ client: createClient(), prefix: "printer:" }),
  redisStore({ client: createCluster({ rootNodes: [{ url: "redis://localhost:7000" }] }) }),
]

export const limiter: Limiter<Job> = createLimiter<Job>({
  rules: source,
  onRulesMissing: "allow",
  fields: { tenant: (job) => job.tenant },
  cost: (job) => job.pages,
  clock: manualClock(),
})

export async function print(job: Job, signal: AbortSignal): Promise<Decision | undefined> {
  try {
    return await limiter.acquire(job, { signal, maxWaitMs: 10_000 })
  } catch (error) {
    if (error instanceof RateLimitExceededError) return error.decision
    if (error instanceof InvalidOptionError)
      for (const { path, message } of error.problems) console.log(path, message)
    throw error
  }
}

// @ts-expect-error a misspelled option is not valid
createLimiter({ limt: 100, window: "1 minute" })
// @ts-expect-error only known clients are valid
redisStore({ client: {} })
// @ts-expect-error this is not a client for DynamoDB
dynamoDBRules({ client: {}, tableName: "rules" })
// @ts-expect-error a limiter of jobs does not accept text
void limiter.decide("printer")
