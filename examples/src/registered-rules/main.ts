import { randomBytes } from "node:crypto"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { dynamoDBRegistry } from "@sluice/dynamodb"
import { Redis } from "ioredis"
import { createPaint } from "../demo/paint.ts"
import { serve } from "../demo/serve.ts"
import { untilMinuteHasRoom } from "../demo/traffic.ts"
import { createApp, RULES } from "./app.ts"
import { sluice } from "./command-line.ts"
import { isKept, type Judged, table } from "./report.ts"
import { ask } from "./round.ts"

const { REDIS_URL, DYNAMODB_ENDPOINT: endpoint } = process.env
if (REDIS_URL === undefined || endpoint === undefined) {
  console.error("Set REDIS_URL and DYNAMODB_ENDPOINT, or run `pnpm demo:rules`, which starts both.")
  process.exit(2)
}

const isTerminal = process.stdout.isTTY === true
const paint = createPaint(isTerminal, process.env.NO_COLOR)
const print = (text = ""): void => void process.stdout.write(`${text}\n`)

// Use a new service for each run, so that runs do not share counters.
const service = `checkout-${randomBytes(3).toString("hex")}`
const tableName = "sluice-example-rules"
const dynamoDB = new DynamoDBClient({
  endpoint,
  region: "local",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
})
const redis = new Redis(REDIS_URL)
const folder = await mkdtemp(join(tmpdir(), "sluice-example-"))
const registry = dynamoDBRegistry({ client: dynamoDB, tableName })
const judged: Judged[] = []

print(`\n${paint("strong", "Sluice")}: rules in DynamoDB, counters in Redis, an Express app, real HTTP.\n`)
await registry.createTable()
const first = await registry.register(service, RULES)
print(`Registered version ${first.version}: per-user 5 a minute, daily 10 for all users together.`)

const { app, limiter } = await createApp({ dynamoDB, redis, tableName, service })
const { url, close } = await serve(app)
const orders = `${url}/orders`

/** Sends requests for several users, and prints the results next to the results that the rules require. */
async function round(
  ...asked: [user: string, times: number, admitted: number, rule: string][]
): Promise<void> {
  const rounds: Judged[] = []
  for (const [user, times, admitted, rule] of asked) {
    rounds.push({ round: await ask(orders, user, times), admitted, rule })
  }
  judged.push(...rounds)
  print(`${table(rounds, paint)}\n`)
}

await untilMinuteHasRoom(Date.now())
await round(["ann", 7, 5, "per-user"], ["bob", 5, 5, ""], ["cleo", 1, 0, "daily"])

const raised = RULES.map((rule) => ({ ...rule, limit: rule.name === "per-user" ? 8 : 20 }))
const second = await registry.register(service, raised, { version: first.version })
await limiter.refresh()
print(`Changed through the registry, version ${second.version}: per-user 8, daily 20. Counts are kept.`)
await round(["ann", 5, 3, "per-user"], ["bob", 1, 1, ""])

print("Changed through the command line: daily 15.")
const file = join(folder, "checkout.yaml")
const where = ["--table", tableName, "--endpoint", endpoint]
await command("pull", "--service", service, "--output", file, ...where)
await writeFile(
  file,
  (await readFile(file, "utf8")).replace("requests_per_unit: 20", "requests_per_unit: 15"),
)
await command("push", file, "--write", ...where)
await limiter.refresh()
await round(["cleo", 3, 1, "daily"])

async function command(...args: string[]): Promise<void> {
  print(paint("quiet", `  $ sluice rules ${args.join(" ").replaceAll(folder, "…")}`))
  const said = await sluice("rules", ...args)
  print(said.replaceAll(folder, "…").replace(/^/gm, "  "))
}

const broken = judged.filter((each) => !isKept(each)).length
if (broken === 0) {
  print(`${paint("good", "✓")} Every limit admitted exactly what it says, before and after each change.`)
} else {
  print(`${paint("bad", "✗")} ${broken} of ${judged.length} rounds did not go as the rules require.`)
  process.exitCode = 1
}
if (broken === 0 && isTerminal && process.stdin.isTTY === true) {
  print(`\nStill serving; rules are polled every two seconds. Try:`)
  print(`\n  curl -i -H "x-user-id: dan" "${orders}?n=[1-9]"`)
  print(`  npx -y pnpm@10.34.9 exec sluice rules list ${where.join(" ")}`)
  print(`\n${paint("quiet", "Ctrl-C ends it.")}`)
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve())
  })
}

await close()
await limiter.close()
await registry.remove(service, { version: "any" })
dynamoDB.destroy()
redis.disconnect()
await rm(folder, { recursive: true })
