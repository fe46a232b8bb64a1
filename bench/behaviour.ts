import { writeFileSync } from "node:fs"
import { CONTENDERS, type Contender } from "./behaviour/contenders.ts"
import type { Drill, Finding } from "./behaviour/drill.ts"
import { DRILLS } from "./behaviour/drills.ts"
import { createProcesses, type Processes } from "./behaviour/processes.ts"
import { type Entry, printDrill, printSummary } from "./behaviour/report.ts"
import { createWorld, type World } from "./behaviour/world.ts"
import { readCommandLine } from "./command-line.ts"
import { type RedisServer, startServer, versionOf } from "./redis/server.ts"
import { describeMachine, printMachine } from "./report/machine.ts"

// Runs Sluice and each peer through the same drills, over real HTTP and a real Redis, and compares their behavior.
// bench/README.md explains the output.

const PACKAGES = [
  ...["@sluice/core", "express-rate-limit", "rate-limit-redis", "rate-limiter-flexible"],
  ...["@fastify/rate-limit", "koa-ratelimit", "express", "fastify", "koa", "ioredis"],
]
/**
 * A response that takes longer than `promptMs` turns the Redis outage into an outage of the app. The client times out
 * after `patienceMs`.
 */
const WAITS = { patienceMs: 5_000, promptMs: 1_000 }
const OURS_IF_QUICK = "sluice, express"

interface Team {
  readonly contender: Contender
  readonly redis: RedisServer
  readonly processes: Processes
  readonly world: World
}

const { quick, json, only } = readCommandLine()
const namedDrills = DRILLS.filter(({ name }) => name.includes(only))
const drills = namedDrills.length > 0 ? namedDrills : DRILLS
const contenders = CONTENDERS.filter(({ name, isOurs }) => {
  return (namedDrills.length > 0 || name.includes(only)) && !(quick && isOurs && name !== OURS_IF_QUICK)
})
if (contenders.length === 0) {
  console.error(`Neither a drill nor a contender is called "${only}". Drills: ${listOf(DRILLS)}.`)
  console.error(`Contenders: ${listOf(CONTENDERS)}.`)
  process.exit(2)
}

const machine = describeMachine(PACKAGES)
printMachine(machine)
const teams: Team[] = []
const results: { readonly drill: Drill; readonly entries: readonly Entry[] }[] = []
try {
  for (const contender of contenders) teams.push(await gather(contender))
  const [{ redis }] = teams as [Team]
  console.log(`Redis ${await versionOf(redis)}, one for each; a client waits ${WAITS.patienceMs / 1_000} s`)
  for (const drill of drills) {
    for (const place of ["first", ...(drill.places ?? [])] as const)
      await Promise.all(teams.map(({ processes }) => processes.prepare(place)))
    const entries = await runAll(drill)
    results.push({ drill, entries })
    printDrill(drill, entries)
  }
} finally {
  await Promise.all(teams.map(({ processes }) => processes.stop()))
  await Promise.all(teams.map(({ redis }) => redis.stop()))
}
printSummary(
  contenders.map(({ name }) => name),
  results,
)
if (json !== undefined) {
  const told = results.map(({ drill: { name, asks, wants }, entries }) => ({ name, asks, wants, entries }))
  writeFileSync(json, `${JSON.stringify({ machine, drills: told }, null, 2)}\n`)
}

async function gather(contender: Contender): Promise<Team> {
  const redis = await startServer()
  const processes = createProcesses(contender.name)
  return { contender, redis, processes, world: createWorld(redis, WAITS, processes.start) }
}

/**
 * Runs a drill for all contenders at the same time, because they mostly wait. If `isAlone` is set, the contenders run
 * one after the other.
 */
async function runAll(drill: Drill): Promise<Entry[]> {
  if (!drill.isAlone) return Promise.all(teams.map((team) => run(drill, team)))
  const entries: Entry[] = []
  for (const team of teams) entries.push(await run(drill, team))
  return entries
}

/** Runs a drill for one contender. If the drill throws, the contender has failed it, and the finding is the error. */
async function run(drill: Drill, { contender, redis, world }: Team): Promise<Entry> {
  await redis.command("FLUSHALL")
  const finding = await drill.run(world).catch((error: Error): Finding => {
    return {
      isGood: false,
      seen: `broke down: ${firstLine(error.message)}`,
      figures: { error: error.message },
    }
  })
  await world.stop()
  return { contender: contender.name, finding }
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? ""
}

function listOf(named: readonly { readonly name: string }[]): string {
  return named.map(({ name }) => name).join("; ")
}
