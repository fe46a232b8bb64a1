import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { dynamoDBRegistry } from "@sluice/dynamodb"
import { onTestFinished, vi } from "vitest"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { startLimitedApi } from "../servers/limited-api.ts"
import { blocksOf } from "./documents.ts"
import { redisUrl } from "./preludes/redis.ts"

/**
 * The only warning that a block may cause. Rules of a file or table may name a field for which a fragment has no
 * extractor.
 */
const EXPECTED_WARNING = "SLUICE_CLIENT_CHOSEN_FIELD"

/**
 * Prepares the surroundings for a block until the current test ends. The working directory is a new folder, with the
 * guide's rules in rules.yaml. If the block names them, REDIS_URL, API_URL and the AWS SDK's variables refer to running
 * servers. Returns a list that receives the warnings of the block's limiters.
 */
export async function enterSurroundings(text: string): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-docs-"))
  const before = process.cwd()
  onTestFinished(async () => {
    process.chdir(before)
    vi.unstubAllEnvs()
    vi.restoreAllMocks()
    await rm(folder, { recursive: true })
  })
  process.chdir(folder)
  for (const method of ["log", "info", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation(() => undefined)
  }
  const warnings: string[] = []
  vi.spyOn(process, "emitWarning").mockImplementation((warning, ...[more]) => {
    const { code = "" } = (typeof more === "object" ? more : {}) as { code?: string }
    if (code !== EXPECTED_WARNING) warnings.push(`${code} ${warning}`)
  })
  if (text.includes("rules.yaml")) await writeFile("rules.yaml", rulesOfTheGuide())
  if (text.includes("REDIS_URL")) vi.stubEnv("REDIS_URL", await redisUrl())
  // Another database of the same server acts as another data center.
  if (text.includes("REDIS_URL_EU")) vi.stubEnv("REDIS_URL_EU", `${await redisUrl()}/1`)
  if (text.includes("API_URL")) {
    const api = await startLimitedApi({ limit: 100, window: "1 minute" })
    onTestFinished(() => api.close())
    vi.stubEnv("API_URL", api.url)
  }
  if (text.includes("new DynamoDBClient(")) {
    const server = await startDynamoDB()
    onTestFinished(() => server.stop())
    await registerRules(server)
    vi.stubEnv("AWS_ENDPOINT_URL_DYNAMODB", server.endpoint)
    vi.stubEnv("AWS_ACCESS_KEY_ID", "test")
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test")
  }
  return warnings
}

/** Creates the table "rules" with some rules for the service "checkout". */
async function registerRules(server: DynamoDBServer): Promise<void> {
  const registry = dynamoDBRegistry({ client: server.client(), tableName: "rules" })
  await registry.createTable()
  await registry.register("checkout", [{ name: "daily", field: "service", limit: 10, window: "1 day" }])
}

function rulesOfTheGuide(): string {
  const block = blocksOf("docs/rules/files.md").find(({ language }) => language === "yaml")
  if (block === undefined) throw new Error("docs/rules/files.md shows no rules file")
  return block.text
}

/** Closes the clients, limiters and exporters that a block has opened and that a program would keep open. */
export async function closeAll(made: Readonly<Record<string, unknown>>): Promise<void> {
  for (const value of Object.values(made)) {
    await closeOne(value)
  }
}

async function closeOne(value: unknown): Promise<void> {
  const isHolder = (typeof value === "object" || typeof value === "function") && value !== null
  if (!isHolder) return
  const holder = value as Readonly<Record<string, () => unknown>>
  const end = ["disconnect", "destroy", "shutdown", "close"].find(
    (name) => typeof holder[name] === "function",
  )
  if (end !== undefined) await holder[end]?.()
}
