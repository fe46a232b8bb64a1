import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { dynamoDBRegistry } from "@sluice/dynamodb"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { sluice } from "../cli/in-process.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import type { Block } from "./blocks.ts"
import { commandLines } from "./shell/words.ts"
import { blocksTestedBy, expectShown } from "./shown.ts"

const [commands, check, match, push] = blocksTestedBy(
  "test/docs/command-line.test.ts",
  "docs/reference/command-line.md",
  4,
) as [Block, Block, Block, Block]

const before = process.cwd()
let server: DynamoDBServer
let folder: string
beforeEach(async () => {
  server = await startDynamoDB()
  folder = await mkdtemp(join(tmpdir(), "sluice-docs-"))
  process.chdir(folder)
  // These settings are part of the user's environment. The documented commands therefore contain neither the server
  // nor the credentials.
  const settings = {
    AWS_ENDPOINT_URL_DYNAMODB: server.endpoint,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  }
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value)
})
afterEach(async () => {
  process.chdir(before)
  vi.unstubAllEnvs()
  await server.stop()
  await rm(folder, { recursive: true })
})

const writeRules = (requests: number, unit: string): Promise<void> =>
  writeFile(
    "checkout.yaml",
    `service_id: checkout
version: 7
rules:
  - name: per-user
    rate: { requests_per_unit: ${requests}, unit: ${unit} }
`,
  )

/** Registers rules until this version exists. The last rules have this limit. */
async function registerUntil(version: number, limit: number): Promise<void> {
  const registry = dynamoDBRegistry({ client: server.client(), tableName: "rules" })
  await registry.createTable()
  for (let n = 1; n <= version; n++) {
    const rules = [{ name: "per-user", limit: limit + version - n, window: "1 minute" }]
    await registry.register("checkout", rules, { version: "any" })
  }
}

/** Runs the command of a block, after "$ ", and returns its output. */
async function runShown({ text }: Block): Promise<{ shown: string; printed: string }> {
  const [command = "", ...lines] = text.split("\n")
  const [line] = commandLines(command.replace("$ ", ""))
  const { out, err } = await sluice(line?.words.slice(1) ?? [])
  return { shown: lines.join("\n"), printed: err + out }
}

it("the documented commands succeed in their order if the registry contains version 7 of the rules", async () => {
  await writeRules(10, "minute")
  const codes: Record<string, number> = {}
  for (const { words } of commandLines(commands.text)) {
    const [, , command = ""] = words
    const { code, err } = await sluice(words.slice(1))
    codes[command] = code
    expect([command, err]).toEqual([command, ""])
    if (command === "create-table") await registerUntil(7, 20)
  }
  // `sluice rules diff` exits with code 1 if it finds a difference.
  expect(codes).toEqual({ "create-table": 0, check: 0, diff: 1, push: 0, list: 0, pull: 0, remove: 0 })
})

it("sluice rules check prints the documented message for a mistake", async () => {
  await writeRules(5, "minit")
  const { shown, printed } = await runShown(check)
  expectShown(shown, printed)
})

it("sluice rules match prints the documented explanation of which rules apply to a request", async () => {
  await writeFile(
    "checkout.yaml",
    `service_id: checkout
rules:
  - { name: login, field: ip, match: { path: /login }, rate: { requests_per_unit: 5, unit: minute } }
  - { name: orders, field: ip, match: { path: "/orders/*" }, rate: { requests_per_unit: 20, unit: hour } }
`,
  )
  const { shown, printed } = await runShown(match)
  expectShown(shown, printed)
})

it("sluice rules push prints the documented message for a conflict", async () => {
  await registerUntil(8, 20)
  await writeRules(10, "minute")
  const { shown, printed } = await runShown(push)
  expectShown(shown, printed)
})
