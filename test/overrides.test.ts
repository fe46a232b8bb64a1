import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createLimiter, type Rule, type Store } from "@sluice/core"
import { dynamoDBRegistry, dynamoDBRules } from "@sluice/dynamodb"
import { redisStore } from "@sluice/redis"
import { fileRules, formatRuleDocument, type LiveRules } from "@sluice/rules"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { stringify } from "yaml"
import { makeTable } from "./dynamodb/tables.ts"
import { type DynamoDBServer, startDynamoDB } from "./servers/dynamodb.ts"
import { type RedisServer, startRedis } from "./servers/redis-server.ts"

const CLIENTS = 10_000
const overrideOf = (i: number) => (i % 2 === 0 ? 1 + (i % 9) : { limit: 10 + i })
const names = Array.from({ length: CLIENTS }, (_, i) => `client-${i}`)
const RULE: Rule = {
  name: "per-client",
  field: "header:x-client",
  limit: 5,
  window: "1 hour",
  overrides: Object.fromEntries(names.map((name, i) => [name, overrideOf(i)])),
}

describe("a rule with 10,000 overrides", () => {
  let redis: RedisServer
  let dynamoDB: DynamoDBServer
  let client: Redis
  let folder: string
  beforeAll(async () => {
    ;[redis, dynamoDB, folder] = await Promise.all([
      startRedis(),
      startDynamoDB(),
      mkdtemp(join(tmpdir(), "sluice-overrides-")),
    ])
    client = new Redis({ host: "127.0.0.1", port: redis.port })
  })
  afterAll(async () => {
    client.disconnect()
    await Promise.all([redis.stop(), dynamoDB.stop(), rm(folder, { recursive: true })])
  })

  /** Checks that the rules of a source apply to each client with the right limit, counted in Redis. */
  async function expectLimits(rules: LiveRules, service: string, more = {}): Promise<void> {
    const store: Store = redisStore({ client, prefix: `${service}:`, timeoutMs: 5_000 })
    const limiter = createLimiter({ rules, service, store, storeTimeoutMs: 5_000, ...more })
    await limiter.ready()
    const decide = (name: string) => limiter.decide({ headers: { "x-client": name } })
    const limits = await Promise.all(names.map(async (name) => (await decide(name)).limit))
    expect(limits).toEqual(names.map((_, i) => (i % 2 === 0 ? 1 + (i % 9) : 10 + i)))
    // The limit of client-2 is 3 in the window, and the limit of a client without an override is 5.
    const admitted = async (name: string) =>
      (await Promise.all(Array.from({ length: 8 }, () => decide(name)))).filter(({ allowed }) => allowed)
        .length
    expect(await admitted("client-2")).toBe(2)
    expect(await admitted("another")).toBe(5)
    await limiter.close()
  }

  it("fits into a DynamoDB item, and is loaded unchanged", async () => {
    const options = { client: dynamoDB.client(), tableName: "rules" }
    await makeTable(options.client, options.tableName)
    const registry = dynamoDBRegistry(options)
    await registry.register("in-a-table", [RULE])
    const { rules } = (await registry.get("in-a-table")) ?? { rules: [] }
    expect(formatRuleDocument("s", rules)).toEqual(formatRuleDocument("s", [RULE]))
    await expectLimits(dynamoDBRules(options), "in-a-table", { onRulesMissing: "deny" })
  })

  it.each([
    ["rules.json", JSON.stringify],
    ["rules.yaml", stringify],
  ] as const)("is loaded unchanged from %s", async (name, format) => {
    const file = join(folder, name)
    await writeFile(file, format(formatRuleDocument(name, [RULE])))
    await expectLimits(fileRules(file), name)
  })
})
