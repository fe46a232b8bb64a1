import { writeFileSync } from "node:fs"
import { ENGINES, engineServer } from "../test/engines/engines.ts"
import { startRedis } from "../test/servers/redis-server.ts"
import { readCommandLine } from "./command-line.ts"
import { type Delay, measureDelays, measureUnsynced } from "./durability/delays.ts"
import { type Loss, lossOf, SETTINGS, type Setting } from "./durability/losses.ts"
import { measureAllLost, measureEvicted } from "./durability/lost-counters.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { pairedRatios, spreadOf } from "./report/statistics.ts"
import { printTable } from "./report/table.ts"

// Measures what a Redis that is killed loses of monthly counters, by its persistence. bench/README.md explains the
// output.

/** `WAITAOF` needs Redis 7.2 or later. */
const ENGINE = "Redis 8.0"
const PER_SECOND = 2_000
/** The parts that `--only` selects. */
const PARTS = { kills: measureKills, delays: printDelays, power: printPower, counters: printCounters }

const { quick, json, only } = readCommandLine()
const rounds = quick ? 2 : 8

const machine = describeMachine(["@sluice/core", "ioredis"])
printMachine(machine)
const engine = ENGINES.find(({ name }) => name === ENGINE)
if (engine === undefined) throw new Error(`The tests have no ${ENGINE}.`)
const binary = await engineServer(engine)
console.log(`Redis ${binary.version}; ${PER_SECOND} requests a second`)
const results: Record<string, unknown> = { machine, rounds }
for (const [name, measure] of Object.entries(PARTS)) {
  if (name.includes(only)) results[name] = await measure()
}
if (json !== undefined) writeFileSync(json, `${JSON.stringify(results, null, 2)}\n`)

async function measureKills() {
  const rows: string[][] = []
  const samples: Record<string, readonly Loss[]> = {}
  for (const setting of SETTINGS) {
    const perSecond = setting.isSlow ? PER_SECOND / rounds : PER_SECOND
    const once = () => lossOf(setting, { perSecond, killMs: killAfter(setting) }, binary)
    const losses: Loss[] = []
    // Slow rounds run at the same time, with a share of the requests each.
    if (setting.isSlow) losses.push(...(await Promise.all(Array.from({ length: rounds }, once))))
    else for (let round = 0; round < rounds; round++) losses.push(await once())
    samples[setting.name] = losses
    rows.push([setting.name, ...figuresOf(losses, perSecond).map((value) => value.toFixed(0))])
  }
  printTable(
    `units lost when the process of Redis is killed (SIGKILL) at a random moment; ${rounds} rounds`,
    ["", "admitted", "lost, median", "most", "by one client, most", "ms of traffic, median", "most"],
    rows,
  )
  return samples
}

/** Returns a random moment, in milliseconds. Slow settings have taken a snapshot by then, unless the run is short. */
function killAfter({ isSlow }: Setting): number {
  return isSlow && !quick ? 65_000 + Math.random() * 60_000 : 1_000 + Math.random() * 3_000
}

function figuresOf(losses: readonly Loss[], perSecond: number): number[] {
  const admitted = spreadOf(losses.map((loss) => loss.admitted)).median
  const lost = spreadOf(losses.map((loss) => loss.lost))
  const byOne = Math.max(...losses.map((loss) => loss.lostByOne))
  const inMs = [lost.median, lost.most].map((units) => (units * 1_000) / perSecond)
  return [admitted, lost.median, lost.most, byOne, ...inMs]
}

async function printDelays() {
  const forMs = quick ? 500 : 3_000
  const delays = await measureDelays({ perSecond: PER_SECOND, rounds, forMs }, binary)
  const of = (name: string, figure: keyof Delay) => (delays[name] ?? []).map((delay) => delay[figure])
  const rows = Object.keys(delays).map((name) => {
    const times = (figure: keyof Delay) => spreadOf(pairedRatios(of(name, figure), of("none", figure)))
    const { median, least, most } = times("p50Ms")
    const [p50, p99] = [spreadOf(of(name, "p50Ms")).median, spreadOf(of(name, "p99Ms")).median]
    return [name, ...[p50, p99, median, least, most, times("p99Ms").median].map((value) => value.toFixed(2))]
  })
  printTable(
    "ms of a decision by appendfsync, in turn, and as a multiple of no AOF",
    ["", "p50", "p99", "p50, times none", "from", "to", "p99, times none"],
    rows,
  )
  return delays
}

async function printPower() {
  const ms = await measureUnsynced(PER_SECOND, quick ? 3_000 : 60_000, binary)
  const units = Math.round((ms * PER_SECOND) / 1_000)
  console.log(
    `\neverysec: a write was on the disk after at most ${ms.toFixed(0)} ms, so a loss of power loses at most ` +
      `${units} units. Redis documents 1 s, and 2 s if the disk is busy.`,
  )
  return { ms, units }
}

async function printCounters() {
  const clients = quick ? 2_000 : 20_000
  const server = await startRedis({ binary })
  try {
    const times = await measureAllLost(server, clients)
    console.log(`\nall counters are lost in the middle of a month: ${times.toFixed(2)} times the limit`)
    const shares: Record<string, number> = {}
    for (const policy of ["allkeys-lru", "noeviction"]) {
      const share = await measureEvicted(server, clients, policy)
      console.log(
        `memory is full, ${policy}: ${(100 * share).toFixed(1)} % of the clients get their limit again`,
      )
      shares[policy] = share
    }
    return { times, shares }
  } finally {
    await server.stop()
  }
}
