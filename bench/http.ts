import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { CONTENDERS, type Contender } from "./http/contenders.ts"
import { CONNECTIONS, measureHttp, type Sample } from "./http/measure.ts"
import { hasWrk, NO_WRK } from "./http/wrk.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { pairedRatios, type Spread, spreadOf } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"

// Measures each framework under the load of wrk: bare, and with constant headers, a constant refusal, a handwritten
// counter, Sluice, or its most popular limiter. The limiters admit or refuse all requests. bench/README.md explains
// the output.

/** The minimum for requests per second, as a share of bare Fastify's. */
const LEAST_OF_FASTIFY = 0.93

const { quick, json, only, starts: asked } = readCommandLine({ takesStarts: true })
const starts = asked ?? (quick ? 1 : 4)
// Run many short rounds, because other load on the machine changes from second to second.
const rounds = quick ? 5 : 10
const seconds = 0.25

const wanted = CONTENDERS.filter(({ name, protection }) => name.includes(only) && protection !== "bare")
if (wanted.length === 0) {
  console.error(`No contender has a name that contains "${only}".`)
  process.exit(2)
}
if (!(await hasWrk())) {
  console.error(NO_WRK)
  process.exit(2)
}
const machine = describeMachine()
printMachine(machine)
console.log(
  `wrk with ${CONNECTIONS} connections; ${starts} processes for each contender, ${rounds} rounds of ${seconds} s in each, in turn with the bare framework`,
)

// The selected contenders, and the bare frameworks with which they are compared.
const needed = CONTENDERS.filter(({ name }) => wanted.some((one) => name === one.name || name === one.bare))
const measured = await measureHttp(needed, { starts, rounds, seconds })
const results = needed.map(report)
printResults()
if (json !== undefined) {
  const samples = Object.fromEntries([...measured].map(([{ name }, list]) => [name, list]))
  writeFileSync(json, `${JSON.stringify({ machine, starts, rounds, seconds, results, samples }, null, 2)}\n`)
}

interface Result {
  readonly contender: Contender
  readonly perSecond: Spread
  readonly p99Ms: Spread
  readonly cpuUs: Spread
  /** Requests per second in each round, as a share of the bare framework's in the same process. */
  readonly ofBare: Spread
  readonly cpuOfBare: Spread
}

function report(contender: Contender): Result {
  const list = measured.get(contender) ?? []
  const own = (member: keyof Sample) => list.map((round) => round.own[member])
  const compared = (member: keyof Sample) =>
    spreadOf(
      pairedRatios(
        own(member),
        list.map((round) => round.bare[member]),
      ),
    )
  return {
    contender,
    perSecond: spreadOf(own("perSecond")),
    p99Ms: spreadOf(own("p99Ms")),
    cpuUs: spreadOf(own("cpuUs")),
    ofBare: compared("perSecond"),
    cpuOfBare: compared("cpuUs"),
  }
}

function printResults(): void {
  const two = ({ median, least, most }: Spread) => [median, least, most].map((value) => value.toFixed(2))
  printTable(
    "Medians of requests per second and CPU time of the server; ratios to the bare framework with least and most",
    ["", "requests/s", "p99 ms", "CPU us", "of bare", "from", "to", "CPU of bare", "from", "to"],
    results.map(({ contender, perSecond, p99Ms, cpuUs, ofBare, cpuOfBare }) => [
      contender.name,
      perSecond.median.toFixed(0),
      p99Ms.median.toFixed(2),
      cpuUs.median.toFixed(1),
      ...two(ofBare),
      ...two(cpuOfBare),
    ]),
  )
  console.log()
  for (const result of results) {
    const { framework, protection, refuses, name } = result.contender
    if (protection !== "sluice") continue
    if (framework === "fastify") {
      const { ofBare, cpuOfBare } = result
      const wanted = `at least ${LEAST_OF_FASTIFY}`
      printWanted(`${name}: of bare`, ofBare.median, ofBare.median >= LEAST_OF_FASTIFY, wanted)
      // The number of bare Fastify's requests that fit in the CPU time of one such request. This number is the same
      // ratio, without noise from other load.
      const byCpu = 1 / cpuOfBare.median
      printWanted(`${name}: of bare, by CPU`, byCpu, byCpu >= LEAST_OF_FASTIFY, wanted)
    }
    const peer = results.find(
      (one) =>
        one.contender.framework === framework &&
        one.contender.protection === "peer" &&
        one.contender.refuses === refuses,
    )
    if (peer === undefined) continue
    const ahead = result.ofBare.median / peer.ofBare.median
    const aheadByCpu = peer.cpuOfBare.median / result.cpuOfBare.median
    printWanted(`${name}: times ${peer.contender.name}`, ahead, ahead > 1, "more than 1")
    printWanted(`${name}: times ${peer.contender.name}, by CPU`, aheadByCpu, aheadByCpu > 1, "more than 1")
  }
}
