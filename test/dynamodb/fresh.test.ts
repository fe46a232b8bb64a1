import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { type ManualClock, manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import { type DynamoDBRulesOptions, openRules } from "../../packages/dynamodb/src/dynamodb-rules.ts"
import type { LoadOptions, RuleSource } from "../../packages/rules/src/source.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { type FaultProxy, startFaultProxy } from "../servers/fault-proxy.ts"
import { makeTable } from "./tables.ts"

const tableName = "rules"
let server: DynamoDBServer
let proxy: FaultProxy
let clock: ManualClock
beforeAll(async () => {
  server = await startDynamoDB()
  proxy = await startFaultProxy(server)
  await makeTable(server.client(), tableName)
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})
beforeEach(() => {
  clock = manualClock()
})

const open = (options: Partial<DynamoDBRulesOptions> = {}): RuleSource =>
  openRules(
    { client: server.client({ endpoint: proxy.endpoint }), tableName, keyType: "S", ...options },
    clock,
  )

// The test engines have one copy of a table, so all of their reads are consistent. These tests check the requests
// instead.
/** Returns for each read of a load and a listing whether a consistent read was requested. */
async function consistent(source: RuleSource, options?: LoadOptions): Promise<readonly unknown[]> {
  proxy.inputs.length = 0
  await source.load("checkout", options)
  for await (const _ of source.loadAll?.(options) ?? []);
  return proxy.inputs.map((input) => (input as { ConsistentRead?: boolean }).ConsistentRead)
}

it("dynamoDBRules reads eventually consistently by default, and consistently for fresh loads", async () => {
  expect(await consistent(open())).toEqual([false, false])
  expect(await consistent(open(), { fresh: false })).toEqual([false, false])
  expect(await consistent(open(), { fresh: true })).toEqual([true, true])
  expect(await consistent(open({ consistentRead: true }))).toEqual([true, true])
})

it("dynamoDBRules keeps reading consistently for 10 s, so that polls do not restore older rules", async () => {
  const source = open()
  await source.load("checkout", { fresh: true })
  clock.advance(9_999)
  expect(await consistent(source)).toEqual([true, true])
  clock.advance(1)
  expect(await consistent(source)).toEqual([false, false])
  expect(await consistent(open())).toEqual([false, false])
})

it("dynamoDBRules counts the 10 s from the latest fresh load of any service", async () => {
  const source = open()
  await source.load("checkout", { fresh: true })
  clock.advance(5_000)
  for await (const _ of source.loadAll?.({ fresh: true }) ?? []);
  clock.advance(9_999)
  expect(await consistent(source)).toEqual([true, true])
})
