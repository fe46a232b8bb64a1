import { type DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { InvalidRuleError, RuleSourceError } from "../../packages/core/src/ground/errors.ts"
import type { StorableRule } from "../../packages/core/src/rules/rule.ts"
import { type DynamoDBRegistry, dynamoDBRegistry } from "../../packages/dynamodb/src/dynamodb-registry.ts"
import { RuleConflictError } from "../../packages/rules/src/registry.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { type Fault, type FaultProxy, startFaultProxy } from "../servers/fault-proxy.ts"
import { pastTimeout, TIMEOUT_MS, unanswered } from "./deadline.ts"
import { attribute, emptyTable, makeTable, putItem } from "./tables.ts"

let server: DynamoDBServer
let proxy: FaultProxy
let direct: DynamoDBClient
let other: DynamoDBRegistry
let registry: DynamoDBRegistry
/** A client with the SDK's own retries. */
let patient: DynamoDBRegistry
const tableName = "rules"
const key = { keyName: "service_id", keyType: "S" } as const
const rule = (limit: number): StorableRule => ({ name: "rule", limit, window: "1 minute" })

beforeAll(async () => {
  server = await startDynamoDB()
  proxy = await startFaultProxy(server)
  direct = server.client()
  const { endpoint } = proxy
  other = dynamoDBRegistry({ client: direct, tableName })
  await other.createTable()
  const client = server.client({ endpoint, maxAttempts: 1 })
  registry = dynamoDBRegistry({ client, tableName, ...key, timeoutMs: TIMEOUT_MS })
  patient = dynamoDBRegistry({
    client: server.client({ endpoint }),
    tableName,
    ...key,
    timeoutMs: TIMEOUT_MS,
  })
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
})
beforeEach(async () => {
  proxy.fault = undefined
  proxy.calls.length = 0
  proxy.unanswered = 0
  await emptyTable(direct, tableName)
})

const there = async (): Promise<unknown> => {
  const found = await other.get("checkout")
  return found && [found.version, found.rules.map(({ limit }) => limit)]
}
const item = async () =>
  (
    await direct.send(
      new GetItemCommand({
        TableName: tableName,
        Key: { service_id: { S: "checkout" } },
        ConsistentRead: true,
      }),
    )
  ).Item
/** Causes a fault on the first writes, at most `times` of them. */
const onWrite = (fault: Fault | undefined, times = Number.POSITIVE_INFINITY) => {
  let seen = 0
  proxy.fault = (action) => (/UpdateItem|DeleteItem/.test(action) && ++seen <= times ? fault : undefined)
}
async function failure(change: Promise<unknown>): Promise<Error> {
  const error = await change.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(Error)
  return error as Error
}
const UNKNOWN =
  "The write may have been carried out, or may be carried out later. Read the stored rules before you write again"

describe("a write whose response is lost", () => {
  it.each<Fault>(["lose", "silence", "cut"])("succeeds if the write was carried out: %s", async (fault) => {
    const ask = <Result>(call: () => Promise<Result>) =>
      fault === "silence" ? pastTimeout(proxy, call) : call()
    onWrite(fault)
    expect(await ask(() => registry.register("checkout", [rule(5)]))).toMatchObject({ version: 1 })
    expect(await ask(() => registry.register("checkout", [rule(6)], { version: 1 }))).toMatchObject({
      version: 2,
      rules: [rule(6)],
    })
    expect(await there()).toEqual([2, [6]])
    expect(await ask(() => registry.remove("checkout", { version: 2 }))).toBe(true)
    expect(await there()).toBeUndefined()
    expect(proxy.calls.filter((call) => call !== "GetItem")).toEqual([
      "UpdateItem",
      "UpdateItem",
      "DeleteItem",
    ])
  })

  it.each<Fault>(["reset", "hang", "fail"])(
    "is reported as uncertain if the write was not carried out: %s",
    async (fault) => {
      await other.register("checkout", [rule(5)])
      onWrite(fault)
      const changes: readonly (() => Promise<unknown>)[] = [
        () => registry.register("checkout", [rule(6)], { version: 1 }),
        () => registry.remove("checkout", { version: 1 }),
      ]
      for (const change of changes) {
        const error = await failure(fault === "hang" ? pastTimeout(proxy, change) : change())
        expect(error).toBeInstanceOf(RuleSourceError)
        expect(error.message).toContain('service "checkout" in DynamoDB table "rules" cannot be re')
        expect(error.message).toContain(UNKNOWN)
      }
      expect(await there()).toEqual([1, [5]])
    },
  )

  it("is reported as uncertain if reading the rules back fails too", async () => {
    proxy.fault = (action) => (action === "UpdateItem" ? "lose" : "fail")
    const error = await failure(registry.register("checkout", [rule(5)]))
    expect(error).toBeInstanceOf(RuleSourceError)
    expect(error.message).toContain(UNKNOWN)
    expect(error.message).toContain("cannot be registered")
  })

  it("is reported as a conflict if another writer has stored that version, and as uncertain after several versions", async () => {
    onWrite("hang")
    const write = () => registry.register("checkout", [rule(6)])
    const conflict = await failure(pastTimeout(proxy, write, () => other.register("checkout", [rule(5)])))
    expect(conflict).toBeInstanceOf(RuleConflictError)
    expect((conflict as RuleConflictError).found).toMatchObject({ version: 1, rules: [rule(5)] })
    await other.remove("checkout", { version: 1 })
    const uncertain = await failure(
      pastTimeout(proxy, write, async () => {
        await other.register("checkout", [rule(5)])
        await other.register("checkout", [rule(7)], { version: 1 })
      }),
    )
    expect(uncertain.message).toContain(UNKNOWN)
  })
})

describe("the SDK's own retries", () => {
  it.each<Fault>(["lose", "cut", "fail", "throttle", "reset"])(
    "do not turn our own write into a conflict: %s",
    async (fault) => {
      onWrite(fault, 1)
      expect(await patient.register("checkout", [rule(5)])).toMatchObject({ version: 1 })
      expect(await there()).toEqual([1, [5]])
      for (const version of [2, "any"] as const) {
        onWrite(undefined)
        await other.register("checkout", [rule(5)], { version: "any" })
        onWrite(fault, 1)
        expect(await patient.remove("checkout", { version })).toBe(true)
        expect(await there()).toBeUndefined()
      }
      onWrite(undefined)
      expect(await patient.remove("checkout", { version: "any" })).toBe(false)
    },
  )

  it("do not mistake an equal write by another writer for our own", async () => {
    await other.register("checkout", [rule(5)])
    expect(await failure(patient.register("checkout", [rule(5)]))).toBeInstanceOf(RuleConflictError)
  })

  it('carry out a write with version "any" only once if the response is lost', async () => {
    onWrite("lose", 1)
    expect(await patient.register("checkout", [rule(5)], { version: "any" })).toMatchObject({ version: 1 })
    expect(await there()).toEqual([1, [5]])
  })
})

describe("a failed write", () => {
  it.each<[Fault, RegExp]>([
    ["throttle", /cannot be (registered|removed): throttled .* poll less often$/],
    [
      "deny",
      /cannot be (registered|removed): not permitted .*allow dynamodb:(UpdateItem|DeleteItem) on the table$/,
    ],
  ])("is reported as refused: %s", async (fault, message) => {
    await other.register("checkout", [rule(5)])
    onWrite(fault)
    expect((await failure(registry.register("checkout", [rule(6)], { version: 1 }))).message).toMatch(message)
    expect((await failure(registry.remove("checkout", { version: 1 }))).message).toMatch(message)
    expect(proxy.calls).toEqual(["UpdateItem", "DeleteItem"])
  })

  it("is not reported as uncertain if it is a conflict that cannot be read", async () => {
    await other.register("checkout", [rule(5)])
    proxy.fault = (action) => (action === "GetItem" ? "throttle" : undefined)
    const error = await failure(registry.register("checkout", [rule(6)]))
    expect(error).toBeInstanceOf(RuleSourceError)
    expect(error.message).not.toContain(UNKNOWN)
  })

  it("rejects with the caller's reason if the signal aborts the write", async () => {
    onWrite("hang")
    const giveUp = new AbortController()
    const writing = failure(registry.register("checkout", [rule(5)], { signal: giveUp.signal }))
    const removing = failure(registry.remove("checkout", { version: 1, signal: giveUp.signal }))
    await unanswered(proxy, 2)
    giveUp.abort(new Error("enough"))
    expect([(await writing).message, (await removing).message]).toEqual(["enough", "enough"])
  })

  it("rejects with the caller's reason if the signal aborts while the result is being read back", async () => {
    proxy.fault = (action) => (action === "UpdateItem" ? "reset" : "hang")
    const giveUp = new AbortController()
    const writing = failure(registry.register("checkout", [rule(5)], { signal: giveUp.signal }))
    await unanswered(proxy, 1)
    giveUp.abort(new Error("enough"))
    expect((await writing).message).toBe("enough")
  })
})

describe("the message of a conflict says what is stored and what to do, for", () => {
  const say = async (change: Promise<unknown>): Promise<string> => (await failure(change)).message

  it("another version", async () => {
    await other.register("checkout", [rule(5)])
    expect(await say(registry.register("checkout", [rule(6)], { version: 3 }))).toBe(
      'Service "checkout" in DynamoDB table "rules" has version 1, but version 3 was expected. Nothing was changed. Read the stored rules, and write again with version: 1',
    )
    expect(await say(registry.register("checkout", [rule(6)]))).toContain(
      "has version 1, but no rules were expected. Nothing was changed",
    )
  })

  it("no rules", async () => {
    expect(await say(registry.register("checkout", [rule(6)], { version: 3 }))).toBe(
      'Service "checkout" in DynamoDB table "rules" has no rules, but version 3 was expected. Nothing was changed. Write without a version to register them again',
    )
  })

  it("rules without a version, which only version 0 replaces", async () => {
    await putItem(direct, tableName, { service_id: { S: "checkout" }, rules: attribute([]) })
    expect(await other.get("checkout")).toEqual({ service: "checkout", version: 0, rules: [], problems: [] })
    expect(await say(registry.register("checkout", [rule(6)]))).toContain(
      "has rules without a version, but no rules were expected. Nothing was changed. Read the stored rules, and write again with version: 0",
    )
    expect(await registry.register("checkout", [rule(6)], { version: 0 })).toMatchObject({ version: 1 })
    await putItem(direct, tableName, { service_id: { S: "checkout" }, rules: attribute([]) })
    expect(await registry.remove("checkout", { version: 0 })).toBe(true)
  })

  it.each(["7", null, 1.5, -1, { a: 1 }])(
    'an invalid version, which version "any" replaces: %j',
    async (version) => {
      await putItem(direct, tableName, {
        service_id: { S: "checkout" },
        rules: attribute([]),
        version: attribute(version),
      })
      expect(await say(registry.register("checkout", [rule(6)], { version: 0 }))).toMatch(/version: "any"$/)
      expect(await registry.register("checkout", [rule(6)], { version: "any" })).toMatchObject({ version: 1 })
      expect(await there()).toEqual([1, [6]])
    },
  )
})

describe('a write with version "any"', () => {
  it("fails with a conflict if other writers are always faster", async () => {
    let version = 0
    proxy.before = async (action) => {
      if (action === "UpdateItem")
        version = (await other.register("checkout", [rule(5)], { version })).version
    }
    const error = await failure(registry.register("checkout", [rule(6)], { version: "any" }))
    proxy.before = undefined
    expect(error).toBeInstanceOf(RuleConflictError)
    expect(proxy.calls.filter((action) => action === "UpdateItem")).toHaveLength(50)
    expect(await there()).toEqual([50, [5]])
  })

  it("does not retry after any other failure", async () => {
    onWrite("throttle")
    const error = await failure(registry.register("checkout", [rule(6)], { version: "any" }))
    expect(error).toBeInstanceOf(RuleSourceError)
    expect(proxy.calls).toEqual(["GetItem", "UpdateItem"])
  })
})

describe("the other attributes of an item", () => {
  it("are kept when rules are replaced, but an older spelling of the rules is removed", async () => {
    await putItem(direct, tableName, {
      service_id: { S: "checkout" },
      version: { N: "7" },
      rule: attribute({ rate: { requestsPerUnit: 5, unit: "minute" } }),
      owner: { S: "team-a" },
      flags: { SS: ["x"] },
    })
    const { version } = await registry.register("checkout", [{ ...rule(5), allow: undefined }], {
      version: 7,
    })
    expect(version).toBe(8)
    expect(await item()).toEqual({
      service_id: { S: "checkout" },
      version: { N: "8" },
      rules: {
        L: [
          {
            M: { name: { S: "rule" }, rate: { M: { requests_per_unit: { N: "5" }, unit: { S: "minute" } } } },
          },
        ],
      },
      owner: { S: "team-a" },
      flags: { SS: ["x"] },
    })
  })

  it('are kept when "any" writes the first rules', async () => {
    await putItem(direct, tableName, { service_id: { S: "checkout" }, owner: { S: "team-a" } })
    expect(await registry.register("checkout", [rule(5)], { version: "any" })).toMatchObject({ version: 1 })
    expect(await item()).toMatchObject({ owner: { S: "team-a" } })
  })
})

describe("an item of DynamoDB", () => {
  const many = (count: number): StorableRule[] =>
    Array.from({ length: count }, (_, i) => ({
      name: `r${i}`,
      limit: 5,
      window: "1m",
      rejectionMessage: "x".repeat(1_000),
    }))

  it("is stored up to 400 KB, and rejected before it is sent if it is larger", async () => {
    await registry.register("checkout", many(370))
    proxy.calls.length = 0
    const error = await failure(registry.register("checkout", many(400), { version: 1 }))
    expect(error).toBeInstanceOf(InvalidRuleError)
    expect(error.message).toMatch(
      /^Wrong rules: rules: the rules of service "checkout" have 4\d{5} bytes, which is too large for a DynamoDB item; accepted: at most 409600 bytes, with fewer or shorter rules$/,
    )
    expect(proxy.calls).toEqual([])
  })

  it("is reported as too large if its other attributes make it too large", async () => {
    await putItem(direct, tableName, {
      service_id: { S: "checkout" },
      rules: attribute([]),
      notes: { S: "x".repeat(300_000) },
    })
    const error = await failure(registry.register("checkout", many(300), { version: 0 }))
    expect(error).toBeInstanceOf(InvalidRuleError)
    expect(error.message).toContain(
      'rules: the rules of service "checkout" and the other attributes of their item are too large for a DynamoDB item',
    )
  })
})

describe("a table whose key is a number", () => {
  it("accepts only services that are numbers", async () => {
    await makeTable(direct, "numbers", "id", "N")
    const numbers = dynamoDBRegistry({ client: direct, tableName: "numbers" })
    expect(await numbers.register("7", [rule(5)])).toMatchObject({ service: "7", version: 1 })
    expect(await numbers.get("7")).toMatchObject({ service: "7", rules: [rule(5)] })
    const error = await failure(numbers.register("checkout", [rule(5)]))
    expect(error).toBeInstanceOf(InvalidRuleError)
    expect(error.message).toBe(
      'Wrong rules: service_id: "checkout" is not a number, but the key of DynamoDB table "numbers" is a number; accepted: a number such as "7"',
    )
    expect(await numbers.get("checkout")).toBeUndefined()
    expect(await numbers.remove("checkout", { version: "any" })).toBe(false)
  })
})
