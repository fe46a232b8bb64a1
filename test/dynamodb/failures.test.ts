import { DynamoDBClient as Client, CreateTableCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { RuleSourceError } from "../../packages/core/src/ground/errors.ts"
import { dynamoDBRegistry } from "../../packages/dynamodb/src/dynamodb-registry.ts"
import { type DynamoDBRulesOptions, dynamoDBRules } from "../../packages/dynamodb/src/dynamodb-rules.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { type Fault, type FaultProxy, startFaultProxy } from "../servers/fault-proxy.ts"
import { pastTimeout, TIMEOUT_MS, unanswered } from "./deadline.ts"
import { attribute, dropTable, makeTable, putItem } from "./tables.ts"

let server: DynamoDBServer
let proxy: FaultProxy
let direct: DynamoDBClient
/** A client that calls through the proxy, without the SDK's retries. */
let client: DynamoDBClient
const tableName = "rules"
const key = { keyName: "service_id", keyType: "S" } as const
const rules = attribute([{ rate: { requests_per_unit: 5, unit: "minute" } }])

beforeAll(async () => {
  server = await startDynamoDB()
  proxy = await startFaultProxy(server)
  direct = server.client()
  client = server.client({ endpoint: proxy.endpoint, maxAttempts: 1 })
  await makeTable(direct, tableName)
  for (let i = 0; i < 5; i++) await putItem(direct, tableName, { service_id: { S: `s${i}` }, rules })
  await putItem(direct, tableName, { service_id: { S: "checkout" }, rules })
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})
beforeEach(() => {
  proxy.fault = undefined
  proxy.calls.length = 0
  proxy.inputs.length = 0
})

const source = (options: Partial<DynamoDBRulesOptions> = {}) =>
  dynamoDBRules({ client, tableName, timeoutMs: TIMEOUT_MS, ...options })

/** Returns the message of the error that rejects the load, after checking its code and cause. */
async function refusal(loading: Promise<unknown>): Promise<string> {
  const error = await loading.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(RuleSourceError)
  expect((error as RuleSourceError).code).toBe("SLUICE_RULE_SOURCE")
  expect((error as RuleSourceError).cause).toBeInstanceOf(Error)
  return (error as RuleSourceError).message
}
const what = 'The rules of service "checkout" in DynamoDB table "rules" cannot be read: '

describe("dynamoDBRules rejects with an error that names the table, the service and the fix, for", () => {
  it("a table that does not exist", async () => {
    const missing = source({ tableName: "rulez" })
    expect(await refusal(missing.load("checkout"))).toBe(
      'The rules of service "checkout" in DynamoDB table "rulez" cannot be read: the table does not exist; ' +
        "create it, or correct tableName or the client's region or endpoint",
    )
    expect(await refusal(source({ tableName: "rulez", ...key }).load("checkout"))).toContain(
      "the table does not exist",
    )
  })

  it("a table that cannot be listed", async () => {
    proxy.fault = (action) => (action === "Scan" ? "deny" : undefined)
    expect(await refusal(drain(source()))).toBe(
      'The rules in DynamoDB table "rules" cannot be listed: not permitted (User: arn:aws:iam::1:user/a is not ' +
        "authorized to perform it); allow dynamodb:Scan on the table",
    )
  })

  it("a missing permission, with the name of the call", async () => {
    proxy.fault = (action) => (action === "GetItem" ? "deny" : undefined)
    expect(await refusal(source().load("checkout"))).toMatch(/allow dynamodb:GetItem on the table$/)
    proxy.fault = () => "deny"
    expect(await refusal(source().load("checkout"))).toMatch(
      /allow dynamodb:DescribeTable on the table, or set the options keyName and keyType$/,
    )
  })

  it.each<[what: string, fault: Fault, message: RegExp]>([
    [
      "throttling",
      "throttle",
      /read: throttled \(Too many reads\); give the table more capacity, switch it to on-demand billing, or poll less often$/,
    ],
    ["a failure of DynamoDB", "fail", /read: DynamoDB failed \(500 The service failed\); try again later$/],
    [
      "a connection that breaks",
      "reset",
      /read: DynamoDB cannot be reached \(.+\); correct the client's region or endpoint, or check the network$/,
    ],
    [
      "an error without a message, by its name",
      { status: 400, type: "a#AccessDeniedException", message: "" },
      /not permitted \(\S+\); allow/,
    ],
  ])("%s", async (_what, fault, message) => {
    proxy.fault = () => fault
    expect(await refusal(source(key).load("checkout"))).toMatch(message)
  })

  it.each([
    ["com.amazon.coral.availability#ThrottlingException", /throttled \(said\)/],
    ["com.amazonaws.dynamodb.v20120810#RequestLimitExceeded", /throttled \(said\)/],
    [
      "com.amazon.coral.service#UnrecognizedClientException",
      /the client's credentials are not accepted \(said\); renew or correct them, and check this machine's clock$/,
    ],
    ["com.amazon.coral.service#InvalidSignatureException", /are not accepted \(said\)/],
    ["com.amazon.coral.service#IncompleteSignatureException", /are not accepted/],
    ["com.amazon.coral.service#MissingAuthenticationTokenException", /are not accepted/],
    ["com.amazon.coral.service#InvalidClientTokenId", /are not accepted/],
    ["com.amazon.coral.service#ExpiredTokenException", /are not accepted/],
    ["com.amazon.coral.validate#ValidationException", /cannot be read: said$/],
  ])("the error %s", async (type, message) => {
    proxy.fault = () => ({ status: 400, type, message: "said" })
    expect(await refusal(source(key).load("checkout"))).toMatch(message)
  })

  it("a value that is not an error", async () => {
    const odd = server.client({ credentials: () => Promise.reject("locked") })
    const error = await source({ client: odd, ...key })
      .load("checkout")
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(RuleSourceError)
    expect(error).toMatchObject({ message: `${what}locked`, cause: "locked" })
  })

  it("a host with several addresses that cannot be reached, whose error has no message", async () => {
    const cause = Object.assign(new AggregateError([]), { code: "ECONNREFUSED" })
    const lost = server.client({ credentials: () => Promise.reject(cause) })
    expect(await refusal(source({ client: lost, ...key }).load("checkout"))).toBe(
      `${what}DynamoDB cannot be reached (ECONNREFUSED); correct the client's region or endpoint, or check the network`,
    )
  })

  it("a missing response within timeoutMs", async () => {
    proxy.fault = () => "hang"
    const load = () => source(key).load("checkout")
    expect(await refusal(pastTimeout(proxy, load))).toBe(
      `${what}no response within 30000 ms; check that the client's region and endpoint are correct and reachable, or raise timeoutMs`,
    )
  })

  it.each([
    [
      "a host that does not exist",
      { endpoint: "http://dynamodb.invalid:8000" },
      /cannot be reached \(.*ENOTFOUND|EAI_AGAIN/,
    ],
    ["a port without a listener", { endpoint: "http://127.0.0.1:9" }, /cannot be reached \(.*ECONNREFUSED/],
    ["an invalid region", { region: "not a region", endpoint: undefined }, /not a region/],
  ])("%s", async (_what, config, expected) => {
    const lost = server.client({ maxAttempts: 1, ...config } as never)
    expect(await refusal(source({ client: lost, ...key }).load("checkout"))).toMatch(expected)
  })

  it("a missing region", async () => {
    const lost = new Client({ region: (): Promise<string> => Promise.reject(new Error("Region is missing")) })
    expect(await refusal(source({ client: lost, ...key }).load("checkout"))).toBe(
      `${what}the client has no region; set AWS_REGION, or give the client a region`,
    )
    lost.destroy()
  })

  it("missing credentials", async () => {
    const nobody = server.client({
      credentials: async () => {
        throw Object.assign(new Error("Could not load credentials from any providers"), {
          name: "CredentialsProviderError",
        })
      },
    })
    expect(await refusal(source({ client: nobody }).load("checkout"))).toBe(
      `${what}the client has no credentials (Could not load credentials from any providers); configure credentials, or run with an IAM role`,
    )
  })

  it("credentials that do not arrive within timeoutMs", async () => {
    const waiting = server.client({ credentials: () => new Promise(() => {}) })
    expect(await refusal(source({ client: waiting, timeoutMs: 50 }).load("checkout"))).toContain(
      "no response within 50 ms",
    )
  })

  it.each(["sort key", "binary key"])("a table with a %s", async (kind) => {
    const name = kind.replace(" ", "-")
    const sorted = kind === "sort key"
    await direct.send(
      new CreateTableCommand({
        TableName: name,
        BillingMode: "PAY_PER_REQUEST",
        KeySchema: [
          { AttributeName: "pk", KeyType: "HASH" },
          ...(sorted ? [{ AttributeName: "sk", KeyType: "RANGE" as const }] : []),
        ],
        AttributeDefinitions: [
          ...(sorted ? [{ AttributeName: "sk", AttributeType: "S" as const }] : []),
          { AttributeName: "pk", AttributeType: sorted ? "S" : "B" },
        ],
      }),
    )
    const reason = sorted
      ? 'its key has a sort key, "sk", so a service can have several items; use a table without a sort key'
      : 'its key "pk" is of type B; use a table whose key is a string or a number'
    for (const failing of [
      source({ tableName: name }).load("checkout"),
      dynamoDBRegistry({ client, tableName: name }).createTable(),
    ]) {
      expect(await refusal(failing)).toContain(`: ${reason}`)
    }
  })
})

describe("the caller's signal", () => {
  it("ends a hanging load immediately, with the signal's reason", async () => {
    proxy.fault = () => "hang"
    for (const options of [{}, key]) {
      const giveUp = new AbortController()
      const arrived = unanswered(proxy, proxy.unanswered + 1)
      const loading = source(options).load("checkout", { signal: giveUp.signal })
      void arrived.then(() => giveUp.abort(new Error("enough")))
      await expect(loading).rejects.toThrow("enough")
    }
  })

  it("ends a listing between two pages", async () => {
    const giveUp = new AbortController()
    const pages = source({ pageSize: 2 }).loadAll?.({ signal: giveUp.signal })[Symbol.asyncIterator]()
    expect((await pages?.next())?.value).toHaveLength(2)
    giveUp.abort(new Error("enough"))
    await expect(pages?.next()).rejects.toThrow("enough")
  })
})

describe("the table's key", () => {
  it("is requested once for all concurrent loads, and not before the first load", async () => {
    const rulesOf = source()
    expect(proxy.calls).toEqual([])
    await Promise.all([rulesOf.load("checkout"), rulesOf.load("s1"), drain(rulesOf)])
    await rulesOf.load("s2")
    expect(proxy.calls.sort()).toEqual(["DescribeTable", "GetItem", "GetItem", "GetItem", "Scan"])
  })

  it("is never requested if the options contain it", async () => {
    await source(key).load("checkout")
    expect(proxy.calls).toEqual(["GetItem"])
  })

  it("is requested again after a failure, which is reported to each caller with the caller's own service", async () => {
    const rulesOf = source()
    proxy.fault = () => "throttle"
    const [one, other] = await Promise.all(
      ["checkout", "s1"].map((service) => refusal(rulesOf.load(service))),
    )
    expect(one).toContain('service "checkout"')
    expect(other).toContain('service "s1"')
    proxy.fault = undefined
    expect((await rulesOf.load("checkout")).rules).toHaveLength(1)
  })

  it("is still looked up for the other callers if the first caller aborts", async () => {
    proxy.fault = (action) => (action === "DescribeTable" ? { delayMs: 60 } : undefined)
    const rulesOf = source()
    const giveUp = new AbortController()
    const first = rulesOf.load("checkout", { signal: giveUp.signal })
    const second = rulesOf.load("checkout")
    giveUp.abort(new Error("enough"))
    await expect(first).rejects.toThrow("enough")
    expect((await second).rules).toHaveLength(1)
  })

  it("is requested again if the table was recreated with another key", async () => {
    const other = await startDynamoDB()
    const client = other.client()
    await makeTable(client, tableName, "service_id")
    const rulesOf = dynamoDBRules({ client, tableName })
    await rulesOf.load("7")
    await dropTable(client, tableName)
    await makeTable(client, tableName, "pk", "N")
    await putItem(client, tableName, { pk: { N: "7" }, rules })
    await refusal(rulesOf.load("7"))
    expect((await rulesOf.load("7")).rules).toHaveLength(1)
    await other.stop()
  })
})

it("a registry always reads consistently", async () => {
  const registry = dynamoDBRegistry({ client, tableName, ...key })
  await registry.get("checkout")
  for await (const _each of registry.list());
  expect(proxy.inputs).toMatchObject([{ ConsistentRead: true }, { ConsistentRead: true }])
})

describe("a listing that fails partway", () => {
  it.each<Fault>(["throttle", "fail", "reset", "cut", "hang"])(
    "rejects if a later page fails: %s",
    async (fault) => {
      let scans = 0
      proxy.fault = (action) => (action === "Scan" && ++scans > 1 ? fault : undefined)
      const seen: number[] = []
      const list = async () => {
        for await (const page of source({ pageSize: 2 }).loadAll?.() ?? []) seen.push(page.length)
      }
      await refusal(fault === "hang" ? pastTimeout(proxy, list) : list())
      expect(seen).toEqual([2])
    },
  )
})

async function drain(rulesOf: ReturnType<typeof dynamoDBRules>): Promise<void> {
  for await (const _page of rulesOf.loadAll?.() ?? []);
}
