import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { afterAll, describe, expect, it } from "vitest"
import { InvalidOptionError } from "../../packages/core/src/ground/errors.ts"
import { dynamoDBRegistry } from "../../packages/dynamodb/src/dynamodb-registry.ts"
import { dynamoDBRules } from "../../packages/dynamodb/src/dynamodb-rules.ts"

const client = new DynamoDBClient({ region: "eu-central-1" })
afterAll(() => client.destroy())
const tableName = "rules"

function problems(make: () => unknown): string[] {
  try {
    make()
    return []
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    return error.problems.map(({ path, message, accepted }) => `${path}: ${message}; ${accepted}`)
  }
}

it("dynamoDBRules polls every 30 seconds by default and has a name for messages", () => {
  expect(dynamoDBRules({ client, tableName })).toMatchObject({
    name: 'DynamoDB table "rules"',
    pollMs: 30_000,
  })
  expect(dynamoDBRules({ client, tableName, pollMs: 5 }).pollMs).toBe(5)
  expect(dynamoDBRules({ client, tableName }).watch).toBeUndefined()
})

describe.each([
  ["dynamoDBRules", dynamoDBRules],
  ["dynamoDBRegistry", dynamoDBRegistry],
])("%s", (_name, make) => {
  it("accepts a table's name or its ARN", () => {
    const arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/rules"
    for (const name of ["abc", "Rules_2-a.b", "x".repeat(255), arn]) {
      expect(problems(() => make({ client, tableName: name }))).toEqual([])
    }
  })

  it.each<[object, readonly string[]]>([
    [{ client: undefined }, ["client: is missing; new DynamoDBClient({ … }) from @aws-sdk/client-dynamodb"]],
    [
      { client: "http://localhost:8000" },
      [
        'client: "http://localhost:8000" is not a DynamoDB client; new DynamoDBClient({ … }) from @aws-sdk/client-dynamodb',
      ],
    ],
    [{ client: null }, [expect.stringContaining("client: null is not a DynamoDB client")]],
    [{ tableName: "" }, [expect.stringContaining('tableName: "" is not the name of a table')]],
    [{ tableName: "ab" }, [expect.stringContaining('tableName: "ab" is not the name of a table')]],
    [{ tableName: "a/b c" }, [expect.stringContaining("is not the name of a table")]],
    [{ timeoutMs: 0 }, [expect.stringContaining("timeoutMs: 0 is not an interval")]],
    [{ timeoutMs: 2 ** 31 }, [expect.stringContaining("timeoutMs: 2147483648 is not an interval")]],
    [{ pageSize: 0 }, ["pageSize: 0 is not a valid number of items; a whole number from 1 to 1000"]],
    [{ pageSize: 1001 }, [expect.stringContaining("pageSize: 1001")]],
    [{ keyType: "B" }, ['keyType: "B" is not a key type; "S" for a string, "N" for a number']],
    [{ keyName: "" }, [expect.stringContaining('keyName: "" is not the name of an attribute')]],
    [{ keyName: "pk" }, ['keyType: is missing, but keyName is "pk"; both keyName and keyType, or neither']],
    [
      { tablName: "x" },
      [expect.stringContaining('tablName: is not an option of a table; did you mean "tableName"?; client, ')],
    ],
    [
      { timeoutMs: "2s", pageSize: 1.5 },
      [expect.stringContaining("timeoutMs: "), expect.stringContaining("pageSize: ")],
    ],
  ])("rejects %j", (wrong, expected) => {
    const found = problems(() => make({ client, tableName, ...wrong } as never))
    expect(found.map((each) => each.replace(/option of \w+/, "option of a table"))).toEqual(expected)
  })

  it.each([undefined, null, 5])("rejects %s as options", (wrong) => {
    expect(problems(() => make(wrong as never))).toHaveLength(1)
  })
})

it("dynamoDBRules rejects invalid options that only dynamoDBRules has", () => {
  expect(problems(() => dynamoDBRules({ client, tableName, pollMs: 0 }))).toEqual([
    "pollMs: 0 is not an interval; a whole number of milliseconds from 1 to 2147483647",
  ])
  expect(problems(() => dynamoDBRules({ client, tableName, consistentRead: 1 as never }))).toEqual([
    "consistentRead: 1 is not a boolean; true or false",
  ])
  expect(problems(() => dynamoDBRegistry({ client, tableName, pollMs: 5 } as never))).toHaveLength(1)
})
