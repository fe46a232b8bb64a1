import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { createRuleBook } from "@sluice/rules"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { dynamoDBRegistry } from "../../packages/dynamodb/src/dynamodb-registry.ts"
import { dynamoDBRules } from "../../packages/dynamodb/src/dynamodb-rules.ts"
import type { FoundRules } from "../../packages/rules/src/source.ts"
import { type DynamoDBServer, ENGINES, startDynamoDB } from "../servers/dynamodb.ts"
import { type FaultProxy, startFaultProxy } from "../servers/fault-proxy.ts"
import { examples } from "../test-length.ts"
import { attribute, fillTable } from "./tables.ts"

const engine = ENGINES.findLast(({ missing }) => missing === undefined)?.engine ?? "dynalite"
let server: DynamoDBServer
let proxy: FaultProxy
let client: DynamoDBClient
beforeAll(async () => {
  server = await startDynamoDB(engine)
  proxy = await startFaultProxy(server)
  client = server.client()
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})

/** Returns the pages of a listing. The proxy records its scans. */
async function pagesOf(tableName: string, pageSize?: number): Promise<(readonly FoundRules[])[]> {
  const through = server.client({ endpoint: proxy.endpoint })
  proxy.calls.length = 0
  const pages: (readonly FoundRules[])[] = []
  const source = dynamoDBRules({ client: through, tableName, pageSize, keyType: "S" })
  for await (const page of source.loadAll?.() ?? []) pages.push(page)
  expect(proxy.calls).toEqual(pages.map(() => "Scan"))
  return pages
}

const rate = (limit: number) => ({ requests_per_unit: limit, unit: "minute" })

const SERVICES = examples(1_000, 5_000)
const last = `service-${SERVICES - 1}`

it("dynamoDBRules loads each of thousands of services once", async () => {
  await fillTable(client, "thousands", SERVICES, (index) => ({
    version: { N: "1" },
    rules: attribute([
      { name: "per-user", field: "user_id", rate: rate(index + 1), request_rejection_message: "later" },
      { name: "daily", limit: 10, window: "2 days", request_rejection_message: "exhausted-daily-limit" },
      ...(index % 2 === 0 ? [{ name: "per-ip", field: "ip", rate: rate(100) }] : []),
    ]),
  }))
  const pages = await pagesOf("thousands")
  const found = pages.flat()
  expect(new Set(found.map(({ service }) => service)).size).toBe(SERVICES)
  expect(new Set(found.map(({ stamp }) => stamp)).size).toBe(SERVICES)
  const some = await found.find(({ service }) => service === last)?.read()
  expect(some).toMatchObject({ version: 1, problems: [], rules: [{ limit: SERVICES }, { window: "2 days" }] })
  expect(Math.max(...pages.map(({ length }) => length))).toBe(50)
})

it.skipIf(engine !== "dynoxide")(
  `the rules of thousands of services take a few MB in a rule book${engine === "dynoxide" ? "" : " (not run: the other engine works in this process)"}`,
  async () => {
    setFlagsFromString("--expose-gc")
    const collectGarbage = runInNewContext("gc") as () => void
    const heapMb = (): number => {
      collectGarbage()
      return process.memoryUsage().heapUsed / 1e6
    }
    const source = dynamoDBRules({ client, tableName: "thousands", keyType: "S", timeoutMs: 10_000 })
    const open = () => createRuleBook({ source, services: "all", logger: { warn() {}, error() {} } })
    const first = open()
    await first.ready()
    expect(first.rulesOf(last)).toMatchObject({ rules: [{ limit: SERVICES }, { name: "daily" }] })
    first.close()

    // Measure a second book, because code that the first book compiled stays in memory. The target is 20 MB for 5,000
    // services.
    const before = heapMb()
    const second = open()
    await second.ready()
    expect(heapMb() - before).toBeLessThan((20 * SERVICES) / 5_000)
    expect(second.rulesOf("service-0")?.rules).toHaveLength(3)
    second.close()
  },
  60_000,
)

it("dynamoDBRules reads small pages while items are large, and larger pages when items are small again", async () => {
  await fillTable(client, "large", 30, (index) => ({
    rules: attribute(Array.from({ length: 100 }, (_, i) => ({ name: `rule-${index}-${i}`, rate: rate(5) }))),
  }))
  const lengths = (await pagesOf("large")).map(({ length }) => length)
  expect(lengths[0]).toBe(10)
  expect(Math.max(...lengths.slice(1))).toBeLessThan(6)
  expect(lengths.reduce((sum, length) => sum + length)).toBe(30)
  expect((await pagesOf("large", 1)).map(({ length }) => length).filter((length) => length > 1)).toEqual([])
})

it("dynamoDBRegistry lists a table of more than 1 MB, although DynamoDB returns at most 1 MB per request", async () => {
  await fillTable(client, "megabytes", 20, () => ({
    rules: attribute([]),
    // Attributes of other programs count toward DynamoDB's page size, but not toward the page size of Sluice.
    notes: { S: "x".repeat(150_000) },
  }))
  const pages = await pagesOf("megabytes", 1_000)
  expect(pages.length).toBeGreaterThan(2)
  expect(new Set(pages.flat().map(({ service }) => service)).size).toBe(20)
  const listed: string[] = []
  for await (const { service } of dynamoDBRegistry({ client, tableName: "megabytes" }).list()) {
    listed.push(service)
  }
  expect(listed).toHaveLength(20)
})

it("dynamoDBRules requests the next page during the use of the current page, and aborts the request when the reader stops", async () => {
  const watched = server.client()
  const send = vi.spyOn(watched, "send")
  const source = dynamoDBRules({ client: watched, tableName: "large", keyType: "S" })
  for await (const _page of source.loadAll?.() ?? []) {
    expect(send).toHaveBeenCalledTimes(2)
    break
  }
  await new Promise((resolve) => setImmediate(resolve))
  const signals = send.mock.calls.map(([, options]) => (options as { abortSignal: AbortSignal }).abortSignal)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, true])
})
