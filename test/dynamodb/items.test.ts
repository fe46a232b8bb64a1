import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { dynamoDBRules } from "../../packages/dynamodb/src/dynamodb-rules.ts"
import type { LoadedRules, RuleSource } from "../../packages/rules/src/source.ts"
import { type DynamoDBServer, ENGINES, startDynamoDB } from "../servers/dynamodb.ts"
import { attribute, type Item, itemOf, makeTable, putItem } from "./tables.ts"

const perMinute = { requests_per_unit: 5, unit: "minute" }
const five = { limit: 5, window: "1 minute" }

describe.each(ENGINES.filter(({ missing }) => missing === undefined))("an item in $engine", ({ engine }) => {
  let server: DynamoDBServer
  let client: DynamoDBClient
  let source: RuleSource
  beforeAll(async () => {
    server = await startDynamoDB(engine)
    client = server.client()
    await makeTable(client, "rules")
    source = dynamoDBRules({ client, tableName: "rules", timeoutMs: 60_000 })
  })
  afterAll(() => server.stop())

  let services = 0
  /** Returns the rules of an item with these attributes. `load` and `loadAll` must agree. */
  async function reading(attributes: Item): Promise<LoadedRules> {
    services += 1
    const service = `s${services}`
    await putItem(client, "rules", { service_id: { S: service }, ...attributes })
    const loaded = await source.load(service)
    expect(await listed(source, service)).toEqual(loaded)
    return loaded
  }
  const told = ({ problems }: LoadedRules): string[] =>
    problems.map(
      ({ path, message }) => `${path.replace(`table "rules" service "s${services}"`, "@")}: ${message}`,
    )

  describe("is read if it contains", () => {
    it.each<[string, object, readonly object[]]>([
      [
        "the current format",
        { version: 7, rules: [{ name: "a", rate: perMinute }] },
        [{ name: "a", ...five }],
      ],
      ["the older attribute rule", { rule: { rate: perMinute } }, [five]],
      ["a JSON string of a list", { rules: JSON.stringify([{ rate: perMinute }]) }, [five]],
      ["a JSON string of one rule", { rule: JSON.stringify({ rate: perMinute }) }, [five]],
      ["no rules at all", { rules: [] }, []],
      ["attributes of other programs", { rules: [], owner: "me", updated_at: 7, versions: [1] }, []],
    ])("%s", async (_what, document, rules) => {
      const loaded = await reading(itemOf(document))
      expect(loaded.problems).toEqual([])
      expect(loaded.rules).toEqual(rules)
      expect(loaded.version).toBe("version" in document ? 7 : undefined)
    })

    it("sets, which become lists", async () => {
      const rule = { ...itemOf({ rate: perMinute, field: "ip" }), deny: { SS: ["192.0.2.7", "10.0.0.0/8"] } }
      expect(await reading({ rules: { L: [{ M: rule }] } })).toMatchObject({
        rules: [{ ...five, field: "ip", deny: ["10.0.0.0/8", "192.0.2.7"] }],
        problems: [],
      })
    })
  })

  describe("is reported with table, service and path, but without losing its valid rules, for", () => {
    const good = { name: "good", rate: perMinute }
    it.each<[string, Item, readonly string[]]>([
      [
        "a limit that is a string",
        { rate: { M: itemOf({ requests_per_unit: "5", unit: "minute" }) } },
        ['rate.requests_per_unit: "5" is not a limit; it is a string, use the number 5'],
      ],
      [
        "a limit beyond 2^53",
        { limit: { N: "9007199254740993" }, window: { S: "1m" } },
        ['limit: "9007199254740993" is not a limit'],
      ],
      ["a set of numbers", { limit: { NS: ["5"] }, window: { S: "1m" } }, ["limit: [5] is not a limit"]],
      [
        "a binary value",
        { ...itemOf({ rate: perMinute }), field: { B: new Uint8Array(3) } },
        ["field: binary data of 3 bytes is not a field or a list of fields"],
      ],
      [
        "a member named constructor",
        itemOf({ rate: perMinute, constructor: {} }),
        ['constructor: "constructor" is not a member of a rule; the nearest is "anchor"'],
      ],
    ])("%s", async (_what, rule, problems) => {
      const loaded = await reading({ rules: { L: [attribute(good), { M: rule }] } })
      expect(loaded.rules).toEqual([{ name: "good", ...five }])
      expect(told(loaded)).toEqual(problems.map((problem) => `@ rules[1].${problem}`))
    })

    it.each<[string, Item, readonly string[]]>([
      ["missing rules", {}, ["@ rules: is missing"]],
      [
        "rules under another name",
        itemOf({ Rules: [] }),
        ['@ Rules: "Rules" is not a member of a rule document; did you mean "rules"?', "@ rules: is missing"],
      ],
      [
        "rules that are binary",
        { rules: { B: new Uint8Array(2) } },
        ["@ rules: binary data of 2 bytes is not a list of rules"],
      ],
      ["rules that are a set", { rules: { SS: ["a"] } }, ['@ rules[0]: "a" is not a rule']],
      [
        "a string that is not JSON",
        { rules: { S: "[{]" } },
        [
          "@ rules: is a string that is not valid JSON: line 1, column 3: a name in double quotes is expected",
        ],
      ],
    ])("%s", async (_what, attributes, problems) => {
      const loaded = await reading(attributes)
      expect(loaded.rules).toEqual([])
      expect(told(loaded)).toEqual(problems)
    })
  })

  it("has the same stamp for equal rules and another stamp after a change", async () => {
    const stampOf = async (attributes: Item) => (await reading(attributes)).stamp
    const rules = attribute([{ rate: perMinute, name: "a" }])
    const stamp = await stampOf({ rules, version: { N: "1" } })
    expect(
      await stampOf({
        version: { N: "1" },
        rules: attribute([{ name: "a", rate: perMinute }]),
        owner: { S: "me" },
      }),
    ).toBe(stamp)
    expect(await stampOf({ rules, version: { N: "2" } })).not.toBe(stamp)
    expect(await stampOf({ rules })).not.toBe(stamp)
    expect(
      await stampOf({ version: { N: "1" }, rules: attribute([{ rate: perMinute, name: "b" }]) }),
    ).not.toBe(stamp)
  })

  it("treats __proto__ as an unknown member of a rule, and does not change the prototype of objects", async () => {
    const document =
      '{"rules":{"L":[{"M":{"rate":{"M":{"unit":{"S":"day"},"requests_per_unit":{"N":"1"}}},"__proto__":{"M":{"shadow":{"BOOL":true}}}}}]}}'
    const item = document.replace("{", '{"service_id":{"S":"proto"},"__proto__":{"S":"x"},')
    const answer = await fetch(server.endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": "DynamoDB_20120810.PutItem",
        "x-amz-date": "20240101T000000Z",
        authorization:
          "AWS4-HMAC-SHA256 Credential=x/20240101/eu-central-1/dynamodb/aws4_request, SignedHeaders=host, Signature=x",
      },
      body: `{"TableName":"rules","Item":${item}}`,
    })
    expect(answer.status).toBe(200)
    const { rules, problems } = await source.load("proto")
    expect(({} as { shadow?: boolean }).shadow).toBeUndefined()
    // dynalite does not store such a member.
    if (engine === "dynalite") {
      expect(rules).toEqual([{ limit: 1, window: "1 day" }])
      expect(problems).toEqual([])
    } else {
      expect(rules).toEqual([])
      expect(problems.map(({ path }) => path)).toEqual(['table "rules" service "proto" rules[0].__proto__'])
    }
  })

  describe.each<["S" | "N", string, string]>([
    ["S", "service_id", "keys-1"],
    ["S", "Service_id", "keys-2"],
    ["N", "service_id", "keys-3"],
    ["N", "Service_id", "keys-4"],
    ["N", "pk", "keys-5"],
  ])("in a table with a key of type %s called %s", (type, name, tableName) => {
    const key = (service: string): Item => ({ [name]: type === "S" ? { S: service } : { N: service } })
    beforeAll(async () => {
      await makeTable(client, tableName, name, type)
      await putItem(client, tableName, { ...key("7"), rules: attribute([{ rate: perMinute }]) })
    })

    it.each([
      ["discovered", {}],
      ["given", { keyName: name, keyType: type }],
    ])("is found by the service's name as a string if the key is %s", async (_how, options) => {
      const keyed = dynamoDBRules({ client, tableName, ...options })
      expect(await keyed.load("7")).toMatchObject({ rules: [five], problems: [] })
      expect(await listed(keyed, "7")).toMatchObject({ rules: [five], problems: [] })
    })

    it("results in no rules for a service that is missing or cannot be a key", async () => {
      const keyed = dynamoDBRules({ client, tableName })
      const long = "1".repeat(2049)
      for (const service of ["8", "07", "7.0", "+7", " 7", "7e0", "-0", "checkout", "", "__proto__", long]) {
        expect([service, await keyed.load(service)]).toEqual([service, { rules: [], problems: [] }])
      }
    })

    if (type === "S") return
    it("is found if the service's name is a decimal or negative number", async () => {
      const keyed = dynamoDBRules({ client, tableName })
      for (const service of ["-1", "1.5", "0", "12345678901234567890123456789012345678"]) {
        await putItem(client, tableName, { ...key(service), rules: attribute([{ rate: perMinute }]) })
        expect(await keyed.load(service)).toMatchObject({ rules: [five] })
        expect(await listed(keyed, service)).toMatchObject({ rules: [five] })
      }
      // DynamoDB reads "-0" as the number 0.
      expect(await keyed.load("-0")).toEqual({ rules: [], problems: [] })
    })
  })
})

async function listed(source: RuleSource, service: string): Promise<LoadedRules | undefined> {
  for await (const page of source.loadAll?.() ?? []) {
    const found = page.find((each) => each.service === service)
    if (found === undefined) continue
    const loaded = await found.read()
    expect(found.stamp).toBe(loaded.stamp)
    return loaded
  }
  return undefined
}
