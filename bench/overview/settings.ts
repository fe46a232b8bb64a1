import type { RedisServer } from "../redis/server.ts"
import type { Steadiness } from "../report/steadiness.ts"

/** The servers and settings that a part uses. */
export interface Run {
  readonly redis: RedisServer
  readonly settings: Settings
  /** Checks the machine's speed between the workloads. */
  readonly steadiness: Steadiness
}

/** The amount of work in an overview. */
export interface Settings {
  /** Number of rounds for each contender in each workload. */
  readonly rounds: number
  /** Duration of a round in memory, in milliseconds. A round through Redis is twice as long. */
  readonly forMs: number
  /** Rounds of HTTP. */
  readonly httpRounds: number
  /** Number of clients in the memory of a process. */
  readonly clients: number
  readonly clientsInRedis: number
  /** Number of requests of the greedy client that searches for the worst case. */
  readonly steps: number
  /** Number of windows of traffic in the comparison with an exact log. */
  readonly windows: number
}

/** The default settings. A run takes about eight minutes on two cores. */
export const USUAL: Settings = {
  rounds: 3,
  forMs: 250,
  httpRounds: 5,
  clients: 1_000_000,
  clientsInRedis: 50_000,
  steps: 100_000,
  windows: 20,
}

/** The settings of a short run, which only checks that everything works and gives rough figures. */
export const QUICK: Settings = {
  rounds: 1,
  forMs: 100,
  httpRounds: 1,
  clients: 100_000,
  clientsInRedis: 10_000,
  steps: 20_000,
  windows: 5,
}
