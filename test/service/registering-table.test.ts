import { DeleteTableCommand } from "@aws-sdk/client-dynamodb"
import { type RulesHome, rulesInTable } from "@sluice/service"
import { afterEach, beforeEach, expect, it } from "vitest"
import { dynamoDBRegistry } from "../../packages/dynamodb/src/dynamodb-registry.ts"
import { itemOf, putItem } from "../dynamodb/tables.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { until } from "../servers/until.ts"
import { DOORS, type Door } from "./door-clients.ts"
import { type Started, startService } from "./started.ts"

// Two instances with rules in the same table. Each instance has a separate copy of everything that belongs to a
// process.

const NOT_FOUND = 5
const ABORTED = 10
const UNAVAILABLE = 14
const tableName = "rules"
const [[, openGrpc], [, openHttp]] = DOORS as [(typeof DOORS)[0], (typeof DOORS)[0]]

let dynamoDB: DynamoDBServer
let home: () => RulesHome
let instances: Started[]
let one: Door
let other: Door

beforeEach(async () => {
  dynamoDB = await startDynamoDB()
  const client = dynamoDB.client()
  await dynamoDBRegistry({ client, tableName, timeoutMs: 20_000 }).createTable()
  home = () => rulesInTable({ client: dynamoDB.client(), tableName, timeoutMs: 20_000, pollMs: 50 })
  instances = [await startService(home()), await startService(home())]
  one = openGrpc(instances[0] as Started)
  other = openHttp(instances[1] as Started)
})

afterEach(async () => {
  one.close()
  for (const instance of instances) {
    await instance.stop()
    expect(instance.faults).toEqual([])
  }
  await dynamoDB.stop()
})

const rule = (limit: number) => ({ name: "rule", rate: { requests_per_unit: limit, unit: "day" } })
const limitAt = async (door: Door) =>
  (await door.call("ShouldForwardRequest", { service_id: 1, peek: true })).value.limit
const isForced = (door: Door, limit: number) =>
  until(`the limit is ${limit}`, async () => (await limitAt(door)) === limit)

it("rules are in force immediately on the instance that registered them, and later on the other instance", async () => {
  await one.call("RegisterService", { service_id: 1, rule: rule(5) })
  expect(await limitAt(one)).toBe(5)
  await isForced(other, 5)
  await other.call("RegisterService", { service_id: 1, rules: [rule(7)], version: 1 })
  expect(await limitAt(other)).toBe(7)
  await isForced(one, 7)
  await one.call("RemoveService", { service_id: 1, version: 2 })
  expect(await limitAt(one)).toBe(0)
  await isForced(other, 0)
})

it("rules are in force immediately if they are registered again after the other instance registered them", async () => {
  // The other instance would not read the table again until tomorrow.
  const slow = rulesInTable({ client: dynamoDB.client(), tableName, timeoutMs: 20_000, pollMs: 86_400_000 })
  const late = await startService(slow)
  instances.push(late)
  const door = openGrpc(late)
  await one.call("RegisterService", { service_id: 1, rules: [rule(5)] })
  expect(await limitAt(door)).toBe(5)
  await one.call("RegisterService", { service_id: 1, rules: [rule(6)], version: 1 })
  expect(await limitAt(door)).toBe(5)
  const again = await door.call("RegisterService", { service_id: 1, rules: [rule(6)] })
  expect(again.value).toMatchObject({ version: 2 })
  expect(await limitAt(door)).toBe(6)
  door.close()
})

it("rules cannot be overwritten without their version, on either instance", async () => {
  const answers = await Promise.all(
    [one, other].map((door, i) => door.call("RegisterService", { service_id: 1, rules: [rule(i + 1)] })),
  )
  expect(answers.map(({ code }) => code).sort((a, b) => a - b)).toEqual([0, ABORTED])
})

it("invalid rules that others wrote are reported, and the valid rules alone do not count as complete", async () => {
  const stored = { service_id: "1", version: 3, rules: [rule(5), { ...rule(0), name: "wrong" }] }
  await putItem(dynamoDB.client(), tableName, itemOf(stored))
  const { value } = await one.call("GetService", { service_id: 1 })
  expect(value).toMatchObject({
    version: 3,
    rules: [{ name: "rule" }],
    problems: [
      expect.stringMatching(
        /^table "rules" service "1" rules\[1\]\.rate\.requests_per_unit: 0 is not a limit; accepted: /,
      ),
    ],
  })
  const effectOf = async () => {
    const { value: read } = await one.call("GetService", { service_id: 1 })
    return (read as { rule_problems: readonly { rule: string; effect: string }[] }).rule_problems
  }
  // These are the first rules of the service, so all except the invalid rule are in force.
  expect(await effectOf()).toMatchObject([{ rule: "wrong", effect: "EFFECT_RULE" }])
  // Without a version, neither a list of rules nor the single rule of a client of the first contract is accepted.
  for (const request of [{ rules: [rule(5)] }, { rule: rule(6) }])
    expect((await one.call("RegisterService", { service_id: 1, ...request })).code).toBe(ABORTED)
  const mended = await one.call("RegisterService", { service_id: 1, rules: [rule(5)], version: 3 })
  expect(mended).toMatchObject({ code: 0, value: { version: 4 } })
  expect(await effectOf()).toEqual([])
  // A previous version exists now, so this previous version stays in force as a whole if a later version is invalid.
  await putItem(dynamoDB.client(), tableName, itemOf({ ...stored, version: 5 }))
  expect(await effectOf()).toMatchObject([
    {
      path: 'table "rules" service "1" rules[1].rate.requests_per_unit',
      description: expect.stringMatching(/^0 is not a limit; accepted: /),
      rule: "wrong",
      effect: "EFFECT_EDITION",
    },
  ])
})

it("rules that are stored without a version can be replaced as version 0, and removed", async () => {
  await putItem(
    dynamoDB.client(),
    tableName,
    itemOf({ service_id: "1", rules: [rule(5), { ...rule(6), name: "b" }] }),
  )
  expect((await other.call("GetService", { service_id: 1 })).value).toMatchObject({ version: 0 })
  const replaced = await other.call("RegisterService", { service_id: 1, rules: [rule(5)], version: 0 })
  expect(replaced.value).toMatchObject({ version: 1 })
  await putItem(dynamoDB.client(), tableName, itemOf({ service_id: "2", rules: [rule(5)] }))
  expect((await one.call("RemoveService", { service_id: 2, version: 0 })).value).toEqual({ removed: true })
})

it("rules are neither read nor written while the table is gone, and the current rules stay in force", async () => {
  await one.call("RegisterService", { service_id: 1, rules: [rule(5)] })
  await dynamoDB.client().send(new DeleteTableCommand({ TableName: tableName }))
  for (const door of [one, other]) {
    for (const [method, more] of [
      ["RegisterService", { rules: [rule(6)] }],
      ["GetService", {}],
      ["RemoveService", { overwrite: true }],
    ] as const) {
      const answered = await door.call(method, { service_id: 1, ...more })
      expect(answered.code).toBe(UNAVAILABLE)
      expect(answered.message).toMatch(/^The rules of service "1" in DynamoDB table "rules" cannot be read/)
    }
  }
  expect(await limitAt(one)).toBe(5)
  await dynamoDBRegistry({ client: dynamoDB.client(), tableName }).createTable()
  expect((await one.call("GetService", { service_id: 1 })).code).toBe(NOT_FOUND)
})
