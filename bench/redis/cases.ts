import { type Case, compare, type Measured, type Sample } from "../load/measure.ts"
import { NOBODY } from "../load/names.ts"
import { WORKLOADS } from "../load/workloads.ts"
import { spreadOf } from "../report/statistics.ts"
import { printTable } from "../report/table.ts"

export const OURS = "sluice take"
export const DECIDE = "sluice decide"
export const IN_MEMORY = "sluice decide, in process"
export const LEASED = "sluice decide, leased"
export const PEER = "rate-limiter-flexible"
export const BLOCK = "rate-limiter-flexible, block"
export const STORE = "express-rate-limit store"
export const RATE_LIMIT_REDIS = "rate-limit-redis"
export const UNION = "rate-limiter-flexible, union"

const BASIC = [OURS, DECIDE, STORE, PEER, RATE_LIMIT_REDIS, NOBODY]
const EMPTY = "empty script, by hand"
const BY_HAND = ["lock, by hand", "WATCH, by hand"]

export const CASES: readonly Case[] = [
  { workload: "uniform", inFlight: 1, names: [...BASIC, EMPTY] },
  { workload: "uniform", inFlight: 64, names: [...BASIC, ...BY_HAND] },
  { workload: "uniform", inFlight: 256, names: BASIC },
  { workload: "zipf", inFlight: 64, names: BASIC },
  { workload: "zipf", inFlight: 256, names: BASIC },
  { workload: "hot", inFlight: 64, names: [...BASIC, ...BY_HAND] },
  { workload: "hot", inFlight: 256, names: BASIC },
  { workload: "hot, limited", inFlight: 256, names: [...BASIC, BLOCK] },
  { workload: "service", inFlight: 64, names: [OURS, DECIDE, LEASED, PEER] },
  { workload: "service", inFlight: 256, names: [OURS, DECIDE, LEASED, PEER] },
  { workload: "service, large", inFlight: 1, names: [OURS, DECIDE, LEASED, IN_MEMORY, PEER] },
  { workload: "service, large", inFlight: 64, names: [OURS, DECIDE, LEASED, PEER] },
  { workload: "service, large", inFlight: 256, names: [OURS, DECIDE, LEASED, PEER] },
  { workload: "client and service", inFlight: 64, names: [DECIDE, LEASED] },
  { workload: "client and service, large", inFlight: 64, names: [DECIDE, LEASED] },
  { workload: "refused", inFlight: 64, names: [...BASIC, BLOCK] },
  { workload: "stacked", inFlight: 64, names: [...BASIC, UNION] },
  { workload: "stacked", inFlight: 256, names: [...BASIC, UNION] },
]

export function printCase({ workload, inFlight }: Case, measured: Measured): void {
  const middle = (name: string, figure: keyof Sample) =>
    spreadOf((measured.get(name) ?? []).map((sample) => sample[figure])).median
  const refused = (name: string) => (100 * middle(name, "refused")) / middle(name, "decisions")
  printTable(
    `${workload}, ${inFlight} in flight: ${WORKLOADS[workload].says}`,
    [
      "",
      "decisions/s",
      "times peer",
      "from",
      "to",
      "p50 ms",
      "p99 ms",
      "Node us",
      "Redis us",
      "calls",
      "refused %",
      "failed",
    ],
    [...measured.keys()].map((name) => {
      const peer = measured.has(PEER) ? PEER : DECIDE
      const { median, least, most } = compare(measured, name, peer, (sample) => sample.perSecond)
      return [
        name,
        middle(name, "perSecond").toFixed(0),
        ...[median, least, most].map((times) => (name === NOBODY ? "" : times.toFixed(2))),
        middle(name, "p50Ms").toFixed(3),
        middle(name, "p99Ms").toFixed(3),
        middle(name, "nodeUs").toFixed(2),
        middle(name, "redisUs").toFixed(2),
        middle(name, "calls").toFixed(3),
        refused(name).toFixed(1),
        `${(measured.get(name) ?? []).reduce((sum, { failed }) => sum + failed, 0)}`,
      ]
    }),
  )
}
