import type { RedisServer } from "../redis/server.ts"
import type { Steadiness } from "../report/steadiness.ts"

/** What a part measures with. */
export interface Run {
  readonly redis: RedisServer
  readonly settings: Settings
  /** To be looked at between the workloads. */
  readonly steadiness: Steadiness
}

/** How long an overview measures. */
export interface Settings {
  /** Rounds of each contender in each workload. */
  readonly rounds: number
  /** Milliseconds of a round in process; through Redis it is twice that. */
  readonly forMs: number
  /** Rounds of HTTP, of a second each. */
  readonly httpRounds: number
  /** Clients in memory, and in Redis. */
  readonly clients: number
  readonly clientsInRedis: number
  /** Requests of the clients that look for the worst case. */
  readonly steps: number
  /** Windows of traffic that counters are compared in with an exact log. */
  readonly windows: number
}

/** Some eight minutes on two cores. */
export const USUAL: Settings = {
  rounds: 3,
  forMs: 250,
  httpRounds: 5,
  clients: 1_000_000,
  clientsInRedis: 50_000,
  steps: 100_000,
  windows: 20,
}

/** Shows that everything runs, and the order of things. */
export const QUICK: Settings = {
  rounds: 1,
  forMs: 100,
  httpRounds: 1,
  clients: 100_000,
  clientsInRedis: 10_000,
  steps: 20_000,
  windows: 5,
}
