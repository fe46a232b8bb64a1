import { type Case, compare, type Measured, netPerSecond, type Sample } from "../load/measure.ts"
import { spreadOf } from "../report/statistics.ts"
import { printWanted } from "../report/table.ts"
import { BLOCK, DECIDE, IN_MEMORY, LEASED, OURS, PEER, RATE_LIMIT_REDIS, STORE, UNION } from "./cases.ts"

/**
 * A target for a case: the minimum ratio of our figure to the peer's figure. For a cost, the minimum ratio of the
 * peer's figure to our figure.
 */
interface Wanted {
  readonly of: string
  readonly name: string
  readonly peer: string
  readonly what: string
  readonly figure: (sample: Sample) => number
  /** Whether a smaller figure is better. */
  readonly isCost: boolean
  readonly least: number
}

const rate = (of: string, name: string, peer: string, least: number): Wanted => ({
  of,
  name,
  peer,
  what: "decisions/s",
  figure: of.startsWith("refused") ? netPerSecond : (sample) => sample.perSecond,
  isCost: false,
  least,
})
const cost = (of: string, name: string, what: "redisUs" | "nodeUs", least: number): Wanted => ({
  of,
  name,
  peer: PEER,
  what: what === "redisUs" ? "less CPU of Redis a decision" : "less CPU of Node a decision",
  figure: (sample) => sample[what],
  isCost: true,
  least,
})

const WANTED: readonly Wanted[] = [
  rate("uniform, 256", OURS, PEER, 5),
  rate("zipf, 256", OURS, PEER, 3.5),
  rate("uniform, 64", OURS, PEER, 3),
  rate("zipf, 64", OURS, PEER, 2.3),
  rate("hot, 256", OURS, PEER, 12),
  rate("hot, 256", DECIDE, PEER, 8),
  rate("refused, 64", OURS, PEER, 50),
  rate("refused, 64", OURS, BLOCK, 4),
  rate("refused, 64", DECIDE, BLOCK, 1),
  cost("uniform, 64", OURS, "redisUs", 3),
  cost("uniform, 256", OURS, "redisUs", 4.5),
  cost("uniform, 64", OURS, "nodeUs", 3.5),
  cost("uniform, 256", OURS, "nodeUs", 5),
  cost("uniform, 64", DECIDE, "nodeUs", 2.5),
  cost("uniform, 256", DECIDE, "nodeUs", 3),
  rate("stacked, 64", OURS, PEER, 6),
  rate("stacked, 256", OURS, PEER, 6),
  rate("stacked, 64", OURS, UNION, 6),
  rate("stacked, 256", OURS, UNION, 6),
  rate("uniform, 64", STORE, RATE_LIMIT_REDIS, 1.5),
  rate("uniform, 256", STORE, RATE_LIMIT_REDIS, 1.5),
  rate("refused, 64", STORE, RATE_LIMIT_REDIS, 10),
]

const MOST_LATENCY = 1.15

/** The minimum number of decisions with leases per second of Node's CPU time, by case. */
const LEASED_A_SECOND: Readonly<Record<string, number>> = {
  "service, 64": 900_000,
  "service, 256": 900_000,
  "service, large, 1": 1_000_000,
  "service, large, 64": 900_000,
  "service, large, 256": 900_000,
}

/** The most CPU time of Redis for a decision with leases, as a multiple of the time without leases, by case. */
const LEASED_OF_REDIS: Readonly<Record<string, number>> = {
  "client and service, 64": 0.7,
  "client and service, large, 64": 0.2,
}

/** The highest p99 of a decision with leases, as a multiple of the p99 with the memory store. */
const LEASED_P99 = 2

/** Prints the targets of a case with the measured figures, one per line. */
export function printWantedOf({ workload, inFlight }: Case, measured: Measured): void {
  const which = `${workload}, ${inFlight}`
  for (const { of, name, peer, what, figure, isCost, least } of WANTED) {
    if (of !== which || !measured.has(name) || !measured.has(peer)) continue
    const ratio = isCost
      ? compare(measured, peer, name, figure).median
      : compare(measured, name, peer, figure).median
    printWanted(
      `${which} in flight: ${name}, times ${peer}, ${what}`,
      ratio,
      ratio >= least,
      `at least ${least}`,
    )
  }
  const least = LEASED_A_SECOND[which]
  const leased = measured.get(LEASED)
  if (least !== undefined && leased !== undefined) {
    const perSecond = spreadOf(leased.map(({ nodeUs }) => 1e6 / nodeUs)).median
    const what = `${which} in flight: ${LEASED}, decisions in a second of Node's CPU`
    printWanted(what, perSecond, perSecond >= least, `at least ${least}`)
  }
  const mostOfRedis = LEASED_OF_REDIS[which]
  if (mostOfRedis !== undefined && leased !== undefined && measured.has(DECIDE)) {
    const ratio = compare(measured, LEASED, DECIDE, (sample) => sample.redisUs).median
    const what = `${which} in flight: ${LEASED}, CPU of Redis a decision, times ${DECIDE}`
    printWanted(what, ratio, ratio <= mostOfRedis, `at most ${mostOfRedis}`)
  }
  if (which === "service, large, 1" && leased !== undefined && measured.has(IN_MEMORY)) {
    const ratio = compare(measured, LEASED, IN_MEMORY, (sample) => sample.p99Ms).median
    const what = `${which} in flight: ${LEASED}, p99, times ${IN_MEMORY}`
    printWanted(what, ratio, ratio <= LEASED_P99, `at most ${LEASED_P99}`)
  }
  if (which === "uniform, 1") {
    const ratio = compare(measured, OURS, PEER, (sample) => sample.p50Ms).median
    const wanted = `at most ${MOST_LATENCY}`
    printWanted(`${which} in flight: ${OURS}, p50, of ${PEER}'s`, ratio, ratio <= MOST_LATENCY, wanted)
  }
  if (workload === "refused") {
    for (const name of [OURS, DECIDE]) {
      const commands = Math.max(0, ...(measured.get(name) ?? []).map((sample) => sample.commands))
      printWanted(`${which} in flight: ${name}, Redis commands a decision`, commands, commands === 0, "none")
    }
  }
}
