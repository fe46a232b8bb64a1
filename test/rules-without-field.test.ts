import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createLimiter, type LimiterOptions, type RequestFacts } from "@sluice/core"
import { dynamoDBRegistry, dynamoDBRules } from "@sluice/dynamodb"
import { createRuleBook, fileRules, parseRuleDocument } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import { startDynamoDB } from "./servers/dynamodb.ts"

const WHOLE = { name: "whole", limit: 9, window: "1 minute" }
const SAID = {
  code: "SLUICE_RULE_WITHOUT_FIELD",
  message: expect.stringMatching(
    /^Rule "whole" has no field, so all requests of the service share its limit\. Write field: "ip" to limit each client address, or field: "service"/,
  ),
}

function fileWith(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "sluice-field-")), "rules.yaml")
  writeFileSync(path, text)
  return path
}

/** Returns the warnings of two limiters on the rules, before any request and after two requests. */
async function saidOf(rules: LimiterOptions<RequestFacts>["rules"]): Promise<unknown[]> {
  const said: unknown[] = []
  const say = ({ code }: { code: string }, message: string): void => void said.push({ code, message })
  const limiter = createLimiter({
    rules,
    onRulesMissing: undefined,
    logger: { warn: say, error: say },
  } as never)
  onTestFinished(() => limiter.close())
  await limiter.ready()
  const atStart = said.length
  for (let i = 0; i < 2; i++) await limiter.decide({ remoteAddress: "192.0.2.1" })
  expect(said).toHaveLength(atStart)
  return said
}

describe("a rule without a field causes one warning when it is loaded", () => {
  it("from a file", async () => {
    const path = fileWith("rules:\n  - { name: whole, limit: 9, window: 1 minute }\n")
    expect(await saidOf(fileRules(path))).toEqual([SAID])
  })

  it("from a file, through a rule book", async () => {
    const path = fileWith("rules:\n  - { name: whole, rate: { requests_per_unit: 9, unit: minute } }\n")
    const book = createRuleBook({ source: fileRules(path) })
    onTestFinished(() => book.close())
    await book.ready()
    expect(await saidOf(book)).toEqual([SAID])
  })

  it("from DynamoDB", async () => {
    const server = await startDynamoDB()
    onTestFinished(() => server.stop())
    const table = { client: server.client(), tableName: "rules" }
    const registry = dynamoDBRegistry(table)
    await registry.createTable()
    await registry.register("default", [WHOLE])
    const said: unknown[] = []
    const say = ({ code }: { code: string }, message: string): void => void said.push({ code, message })
    const limiter = createLimiter({
      rules: dynamoDBRules(table),
      onRulesMissing: "deny",
      logger: { warn: say, error: say },
    })
    onTestFinished(() => limiter.close())
    await limiter.ready()
    expect(said).toEqual([SAID])
  })

  it("from a parsed document", async () => {
    const rules = parseRuleDocument({ rules: [WHOLE, { ...WHOLE, name: "own", field: "ip" }] })
    expect(await saidOf(rules)).toEqual([SAID])
  })
})

it.each(["service", "ip"])("a stored rule with the field %j causes no warning", async (field) => {
  const path = fileWith(JSON.stringify({ rules: [{ ...WHOLE, field }] }))
  expect(await saidOf(fileRules(path))).toEqual([])
})

it("an inline rule without a field counts by address, without a warning", async () => {
  const said: string[] = []
  const say = ({ code }: { code: string }): void => void said.push(code)
  const limiter = createLimiter({ limit: 1, window: "1 minute", logger: { warn: say, error: say } })
  onTestFinished(() => limiter.close())
  await limiter.decide({ remoteAddress: "192.0.2.1" })
  expect((await limiter.decide({ remoteAddress: "192.0.2.2" })).allowed).toBe(true)
  expect(said).toEqual([])
})
