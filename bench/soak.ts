import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { dynamoDBRegistry } from "@sluice/dynamodb"
import { startDynamoDB } from "../test/servers/dynamodb.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { percentile } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"
import { missingEngine } from "./rules/dynamodb-services.ts"
import { startServiceProgram } from "./service/program.ts"
import { ATTACKS, HOLDING, OPEN } from "./soak/attacks.ts"
import { type Heard, Innocent, SHOP } from "./soak/innocent.ts"
import type { Target } from "./soak/target.ts"

// Calls the decision service 200 times per second while one attacker of each kind attacks it. bench/README.md explains
// the output.

const ATTACKER = new URL("./soak/attacker.ts", import.meta.url)
const TOKEN = "the-token-of-everybody"
const TABLE = "rules"
const MIB = 2 ** 20
const QUIET_MS = 60_000
const SETTLE_MS = 15_000
const WANTED_TIMES = 5
const certificate = (name: string): string =>
  fileURLToPath(new URL(`../test/fixtures/tls/${name}`, import.meta.url))

const { values } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== "--"),
  options: { minutes: { type: "string", default: "10" }, only: { type: "string", default: "" } },
})
const minutes = Number(values.minutes)
const kinds = Object.keys(ATTACKS).filter((kind) => kind.includes(values.only))
if (!(minutes > 0) || kinds.length === 0) {
  console.error(`Accepted: --minutes NUMBER above 0, --only PART of ${Object.keys(ATTACKS).join(", ")}`)
  process.exit(2)
}

printMachine(describeMachine())
const dynamodb = await startDynamoDB(missingEngine === undefined ? "dynoxide" : "dynalite")
const registry = dynamoDBRegistry({ client: dynamodb.client(), tableName: TABLE })
await registry.createTable()
const units = { name: "units", field: "user", limit: 1_000_000_000, window: "1 day" } as const
await registry.register(SHOP, [units])
await registry.register(OPEN, [units])
const throttle = { kind: "queue", maxWaiting: 100_000, maxWaitMs: 2 ** 31 - 1 } as const
await registry.register(HOLDING, [{ name: "held", field: "service", limit: 1, window: "1 day", throttle }])

const service = await startServiceProgram({
  rules: ["--table", TABLE, "--endpoint", dynamodb.endpoint, "--region", "eu-central-1"],
  args: ["--tls-cert", certificate("server.pem"), "--tls-key", certificate("server.key")],
  env: {
    SLUICE_TOKENS: JSON.stringify({ "*": TOKEN }),
    AWS_ACCESS_KEY_ID: "bench",
    AWS_SECRET_ACCESS_KEY: "bench",
  },
})
const target: Target = { grpcPort: service.grpcPort, httpPort: service.httpPort, token: TOKEN }
const innocent = new Innocent(target)
const attackers: ChildProcess[] = []
try {
  await innocent.ask(5_000)
  const before = await innocent.ask(QUIET_MS)
  const rssBefore = (await service.usage()).rssBytes
  for (const [index, kind] of kinds.entries()) {
    const args = [kind, `127.0.0.${2 + index}`, JSON.stringify(target)]
    attackers.push(fork(ATTACKER, args, { execArgv: process.execArgv }))
  }
  await innocent.ask(5_000)
  let peakRss = 0
  const watch = setInterval(async () => {
    peakRss = Math.max(peakRss, (await service.usage()).rssBytes)
  }, 1_000)
  const during = await innocent.ask(minutes * 60_000)
  clearInterval(watch)
  await endAttackers()
  await innocent.ask(SETTLE_MS)
  const after = await innocent.ask(QUIET_MS)
  report([
    ["before", before],
    [`with ${kinds.length} attackers`, during],
    ["after", after],
  ])
  const p99 = percentile([...before.tookMs, ...after.tookMs], 0.99)
  const times = percentile(during.tookMs, 0.99) / p99
  const failed = [before, during, after].reduce((sum, heard) => sum + failures(heard), 0)
  printWanted("calls that failed", failed, failed === 0, "0")
  printWanted(
    "p99 with attackers, times p99 without",
    times,
    times <= WANTED_TIMES,
    `at most ${WANTED_TIMES}`,
  )
  console.log(`RSS of the service: ${mib(rssBefore)} before, at most ${mib(peakRss)} with attackers`)
} finally {
  await endAttackers()
  innocent.close()
  await service.stop()
  await dynamodb.stop()
}

async function endAttackers(): Promise<void> {
  for (const attacker of attackers.splice(0)) {
    if (attacker.exitCode !== null || attacker.signalCode !== null) continue
    attacker.kill("SIGKILL")
    await once(attacker, "exit")
  }
}

function report(phases: readonly (readonly [string, Heard])[]): void {
  const header = [
    "an innocent caller, 200 calls a second",
    "calls",
    "failed",
    "p50 ms",
    "p99 ms",
    "longest ms",
  ]
  const rows = phases.map(([name, heard]) => {
    const at = (part: number): string => percentile(heard.tookMs, part).toFixed(1)
    return [name, String(heard.tookMs.length), String(failures(heard)), at(0.5), at(0.99), at(1)]
  })
  printTable(`One attacker of each kind for ${minutes} minutes: ${kinds.join(", ")}`, header, rows)
  for (const [name, { failed }] of phases) {
    for (const [reason, count] of failed) console.log(`${name}: ${count} x ${reason}`)
  }
}

function failures({ failed }: Heard): number {
  return [...failed.values()].reduce((sum, count) => sum + count, 0)
}

function mib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`
}
