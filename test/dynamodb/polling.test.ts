import { performance } from "node:perf_hooks"
import { setImmediate as turn } from "node:timers/promises"
import { createLimiter, type Limiter } from "@sluice/core"
import { dynamoDBRegistry, dynamoDBRules } from "@sluice/dynamodb"
import { createRuleBook } from "@sluice/rules"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type DynamoDBServer, ENGINES, startDynamoDB } from "../servers/dynamodb.ts"
import { type Fault, type FaultProxy, startFaultProxy } from "../servers/fault-proxy.ts"
import { until } from "../servers/until.ts"
import { examples } from "../test-length.ts"
import { attribute, fillTable } from "./tables.ts"

const tableName = "rules"
const silent = { warn() {}, error() {} }
let server: DynamoDBServer
let proxy: FaultProxy
let limiter: Limiter<object>
let version = 0
const limit = (to: number) => [{ name: "rule", limit: to, window: "1 hour" }]
const register = async (to: number): Promise<void> => {
  const registry = dynamoDBRegistry({ client: server.client(), tableName })
  version = (await registry.register("checkout", limit(to), { version })).version
}

beforeAll(async () => {
  server = await startDynamoDB()
  proxy = await startFaultProxy(server)
  await dynamoDBRegistry({ client: server.client(), tableName }).createTable()
  await register(1_000)
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})
const rules = () => {
  const client = server.client({ endpoint: proxy.endpoint, maxAttempts: 1 })
  return dynamoDBRules({ client, tableName, pollMs: 20, timeoutMs: 1_000, keyType: "S" })
}
beforeEach(async () => {
  proxy.fault = undefined
  proxy.calls.length = 0
})
afterEach(() => limiter?.close())

describe("while the table is polled", () => {
  it.each<Fault>(["throttle", "reset", "hang"])(
    "decisions use the last valid rules during a failure, and a changed rule afterwards: %s",
    async (fault) => {
      limiter = createLimiter({
        rules: rules(),
        onRulesMissing: "allow",
        service: "checkout",
        logger: silent,
      })
      await limiter.ready({ retry: true })
      const errors: string[] = []
      limiter.on("rule-error", ({ message }) => errors.push(message))
      proxy.fault = () => fault
      await until("loading has failed", async () => {
        expect(await limiter.peek({})).toMatchObject({ allowed: true, limit: 1_000, degraded: false })
        return errors.length > 0
      })
      expect(errors[0]).toContain('service "checkout" in DynamoDB table "rules" cannot be read')
      await register(3_000)
      proxy.fault = undefined
      await until("the change is in force", async () => (await limiter.peek({})).limit === 3_000)
      await register(1_000)
    },
  )
})

// Use dynoxide, because dynalite runs in this process.
const other = ENGINES.find(({ engine }) => engine === "dynoxide")

describe("thousands of services", () => {
  it.skipIf(other?.missing !== undefined)(
    `are polled without making any request wait long${other?.missing === undefined ? "" : ` (not run: ${other.missing})`}`,
    async () => {
      const many = await startDynamoDB("dynoxide")
      const client = many.client()
      const services = examples(1_000, 5_000)
      await fillTable(client, tableName, services, (index) => ({
        rules: attribute([
          { name: "rule", limit: index + 1, window: "1 hour" },
          { name: "daily", field: "ip", rate: { requests_per_unit: 10, unit: "day" } },
        ]),
      }))
      const source = dynamoDBRules({ client, tableName, keyType: "S", timeoutMs: 30_000 })
      const book = createRuleBook({ source, services: "all", pollMs: 50, logger: silent })
      limiter = createLimiter({ rules: book, onRulesMissing: "allow", service: `service-${services - 1}` })
      await limiter.ready({ retry: true })
      // Each round contains at least one poll with the same work. Garbage collection does not occur in every round.
      const longest: number[] = []
      for (let round = 0; round < examples(2, 3); round++) {
        let longestMs = 0
        const stop = performance.now() + examples(500, 2_000)
        while (performance.now() < stop) {
          // Measure CPU time, because other tests run at the same time.
          const begun = process.cpuUsage()
          await limiter.decide({}, { cost: 0 })
          await turn()
          const { user, system } = process.cpuUsage(begun)
          longestMs = Math.max(longestMs, (user + system) / 1000)
        }
        longest.push(longestMs)
      }
      await limiter.close()
      book.close()
      await many.stop()
      // A poll takes about 8 ms, most of which the SDK needs to deserialize a page (`bench:rules`). A page of 1 MB
      // would take 250 ms. On a busy machine, or with coverage, both take several times as long.
      expect(Math.min(...longest)).toBeLessThan(100)
    },
    60_000,
  )
})
