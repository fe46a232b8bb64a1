import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { type Case, type Measured, measureCase } from "./load/measure.ts"
import { CASES, DECIDE, IN_MEMORY, LEASED, OURS, PEER, printCase } from "./redis/cases.ts"
import { measureClustered, printClustered } from "./redis/clustered.ts"
import { measureEngines, printEngines } from "./redis/engines.ts"
import { measureFlash, printFlash } from "./redis/flash.ts"
import { measureFrozen } from "./redis/frozen.ts"
import { measureMemory, printMemory } from "./redis/memory.ts"
import { measureNewlyRefused } from "./redis/newly-refused.ts"
import { measurePaced, printPaced } from "./redis/paced.ts"
import { measurePermits, printPermits } from "./redis/permits.ts"
import { measurePostgres, printPostgres } from "./redis/postgres.ts"
import { measureFarCharges, measureRefunds, printFarCharges, printRefunds } from "./redis/refunds.ts"
import { startServer, versionOf } from "./redis/server.ts"
import { printWantedOf } from "./redis/wanted.ts"
import { describeMachine, printMachine } from "./report/machine.ts"

// Measures the cost of counting one request in Redis: `take` of the store, `decide`, the store calls of the peers,
// and handwritten alternatives. bench/README.md explains the output.

const PACKAGES = [
  "@sluice/core",
  "rate-limiter-flexible",
  "rate-limit-redis",
  "express-rate-limit",
  "ioredis",
]
const ALWAYS = [OURS, PEER]
/** Parts that `--only` can select on their own. */
const FROZEN = "frozen"
const PERMITS = "permits"
const ENGINES = "engines"
const POSTGRES = "postgres"

const { quick, json, only } = readCommandLine()
const rounds = quick ? 2 : 7
const forMs = quick ? 300 : 1_500

const server = await startServer()
try {
  const machine = describeMachine(PACKAGES)
  printMachine(machine)
  console.log(
    `Redis ${await versionOf(server)}; ${rounds} rounds of ${forMs} ms, in turn, one process for each`,
  )
  const measured = await measureSelected()
  if (json !== undefined)
    writeFileSync(json, `${JSON.stringify({ machine, rounds, forMs, ...measured }, null, 2)}\n`)
} finally {
  await server.stop()
}

async function measureSelected() {
  if (only === FROZEN) return { frozen: await measureFrozen(server, rounds) }
  if (only === ENGINES) return { engines: await measureAndPrintEngines() }
  if (only === POSTGRES) return { postgres: await measureAndPrintPostgres() }
  return only === PERMITS ? { permits: await measureAndPrintPermits() } : measureAll()
}

async function measureAndPrintPermits() {
  const permits = await measurePermits(server, { rounds, clients: quick ? 2_048 : 8_192 })
  printPermits(permits)
  return permits
}

async function measureAndPrintEngines() {
  const engines = await measureEngines(rounds, forMs)
  printEngines(engines)
  return engines.map(({ engine, samples }) => ({ engine, samples: Object.fromEntries(samples) }))
}

async function measureAndPrintPostgres() {
  const postgres = await measurePostgres(rounds, forMs)
  printPostgres(postgres)
  return postgres
}

/** Measures the contenders that `only` selects in all parts, and returns every sample. */
async function measureAll() {
  const measured: { readonly of: Case; readonly samples: Measured }[] = []
  for (const one of CASES) {
    const compared = LEASED.includes(only) ? [...ALWAYS, DECIDE, IN_MEMORY] : ALWAYS
    const names = one.names.filter((name) => compared.includes(name) || name.includes(only))
    const samples = await measureCase(server, { ...one, names }, { rounds, forMs })
    measured.push({ of: one, samples })
    printCase(one, samples)
  }
  const newlyRefused = await measureNewlyRefused(server, only)
  const refunds = await measureRefunds(server, { rounds, clients: quick ? 4_096 : 16_384 })
  printRefunds(refunds)
  const permits = await measureAndPrintPermits()
  const engines = await measureAndPrintEngines()
  const postgres = await measureAndPrintPostgres()
  const farCharges = await measureFarCharges(server, quick ? 12_800 : 64_000)
  printFarCharges(farCharges)
  const tracked = quick ? 20_000 : 100_000
  const memory = await measureMemory(server, tracked)
  printMemory(memory, tracked)
  const frozen = DECIDE.includes(only) ? await measureFrozen(server, rounds) : undefined
  const isLeasedWanted = LEASED.includes(only)
  const paced = isLeasedWanted ? await measurePaced(server, quick ? 4_000 : 20_000) : []
  const clustered = isLeasedWanted ? await measureClustered(rounds, forMs) : undefined
  const flash = isLeasedWanted ? await measureFlash(server) : []
  printFlash(flash)
  console.log()
  for (const { of, samples } of measured) printWantedOf(of, samples)
  printPaced(paced)
  if (clustered !== undefined) printClustered(clustered)
  const cases = measured.map(({ of: { workload, inFlight }, samples }) => {
    return { workload, inFlight, samples: Object.fromEntries(samples) }
  })
  return {
    cases,
    newlyRefused,
    refunds,
    permits,
    farCharges,
    memory,
    frozen,
    paced,
    clustered,
    flash,
    engines,
    postgres,
  }
}
