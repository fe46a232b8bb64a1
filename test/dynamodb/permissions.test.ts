import { readFile } from "node:fs/promises"
import { createLimiter } from "@sluice/core"
import { dynamoDBRegistry, dynamoDBRules } from "@sluice/dynamodb"
import { createRuleBook, type RuleBook } from "@sluice/rules"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { type FaultProxy, startFaultProxy } from "../servers/fault-proxy.ts"

const tableName = "rules"
const logger = { warn() {}, error() {} }
const rules = [{ limit: 5, window: "1m" }]
let guide: string
let server: DynamoDBServer
let proxy: FaultProxy
beforeAll(async () => {
  guide = await readFile(new URL("../../docs/service/dynamodb.md", import.meta.url), "utf8")
  server = await startDynamoDB()
  proxy = await startFaultProxy(server)
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})
beforeEach(() => {
  proxy.calls.length = 0
})

/** Returns the permissions from the guide's table. `used` returns the actions that the proxy has received. */
const granted = (what: string): readonly string[] => {
  const row = guide.split("\n").find((line) => line.startsWith(`| ${what} |`)) ?? ""
  return [...row.matchAll(/`dynamodb:(\w+)`/g)].map(([, action = ""]) => action).sort()
}
const used = (): readonly string[] => [...new Set(proxy.calls)].sort()
const options = () => ({ client: server.client({ endpoint: proxy.endpoint }), tableName })

it("the guide lists the permissions for the registry and its table", async () => {
  const registry = dynamoDBRegistry(options())
  await registry.createTable()
  expect(used()).toEqual([...granted("`createTable`"), "DescribeTable"].sort())
  proxy.calls.length = 0
  await registry.register("checkout", rules)
  await registry.register("search", rules)
  await registry.get("checkout")
  await registry.remove("search", { version: 1 })
  for await (const _ of registry.list());
  expect(used()).toEqual(granted("`dynamoDBRegistry`"))
})

it("the guide lists the permissions for the rules of one service", async () => {
  const limiter = createLimiter({
    rules: dynamoDBRules(options()),
    onRulesMissing: "allow",
    service: "checkout",
    logger,
  })
  await limiter.ready({ retry: true })
  await limiter.close()
  expect(used()).toEqual(granted("`dynamoDBRules`, one service"))
})

it("the guide lists the permissions for the rules of all services, even unlisted ones", async () => {
  const book: RuleBook = createRuleBook({ source: dynamoDBRules(options()), services: "all", logger })
  await book.ready()
  const limiter = createLimiter({ rules: book, onRulesMissing: "allow", service: "not-listed", logger })
  await limiter.ready({ retry: true })
  await limiter.close()
  book.close()
  expect(used()).toEqual(granted("`dynamoDBRules`, all services"))
})
