import type { Framework } from "../http/worker.ts"
import type { Workload } from "../load/workloads.ts"

export const GROUPS = ["decide", "store", "http", "service"] as const
export type Group = (typeof GROUPS)[number]

export function isGroup(name: string): name is Group {
  return GROUPS.some((group) => group === name)
}

/** The suffix of figures that are the CPU time of the Redis server. */
export const OF_REDIS = ": Redis server"

interface Amount {
  /** Number of requests before the measurement, so that the code is compiled. */
  readonly warmUp: number
  /** Number of requests that are measured, in equal slices. */
  readonly measured: number
}

/** Requests to a contender of `bench/load`. */
interface Counting extends Amount {
  readonly measurement: string
  readonly inFlight: number
}

/** Requests to the decision service. The figure is the cost of one decision. */
export interface Calling extends Amount {
  readonly measurement: string
  readonly over: "grpc" | "http"
  /** Decisions in one call. */
  readonly each: number
}

/** The measurements of one process. Both builds are measured in a new process for each job in each round. */
export type Job = { readonly group: Group } & (
  | {
      readonly kind: "counting"
      readonly contender: string
      readonly store: "memory" | "redis"
      readonly workload: Workload
      readonly countings: readonly Counting[]
    }
  | { readonly kind: "calling"; readonly callings: readonly Calling[] }
  | ({ readonly kind: "serving"; readonly measurement: string; readonly framework: Framework } & Amount)
)

/**
 * All jobs. The load is a number of requests and not a time, so that the compiler optimizes for the same requests
 * even on a busy machine. A measurement takes less than two seconds on an idle machine.
 */
export const JOBS: readonly Job[] = [
  {
    group: "decide",
    kind: "counting",
    contender: "sluice decide",
    store: "redis",
    workload: "uniform",
    countings: [
      { measurement: "decide, Redis, 1 in flight", inFlight: 1, warmUp: 4_000, measured: 12_000 },
      { measurement: "decide, Redis, 64 in flight", inFlight: 64, warmUp: 50_000, measured: 150_000 },
      { measurement: "decide, Redis, 256 in flight", inFlight: 256, warmUp: 50_000, measured: 150_000 },
    ],
  },
  {
    group: "decide",
    kind: "counting",
    contender: "sluice decide, in process",
    store: "memory",
    workload: "uniform",
    countings: [{ measurement: "decide, memory", inFlight: 1, warmUp: 300_000, measured: 900_000 }],
  },
  {
    group: "store",
    kind: "counting",
    contender: "sluice take, in process",
    store: "memory",
    workload: "uniform",
    countings: [{ measurement: "take, memory", inFlight: 1, warmUp: 1_000_000, measured: 1_800_000 }],
  },
  ...(["fastify", "express", "koa"] as const).map(
    (framework): Job => ({
      group: "http",
      kind: "serving",
      measurement: `${framework}, admitting`,
      framework,
      warmUp: 10_000,
      measured: 15_000,
    }),
  ),
  {
    group: "service",
    kind: "calling",
    callings: [
      { measurement: "service, gRPC, single calls", over: "grpc", each: 1, warmUp: 20_000, measured: 30_000 },
      {
        measurement: "service, gRPC, batches of 100",
        over: "grpc",
        each: 100,
        warmUp: 200_000,
        measured: 300_000,
      },
      { measurement: "service, HTTP, single calls", over: "http", each: 1, warmUp: 10_000, measured: 12_000 },
    ],
  },
]
