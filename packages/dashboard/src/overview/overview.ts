import type { LimiterStatus } from "@sluice/core"
import type {
  BusyClient,
  LimitedClient,
  OutcomeCounts,
  RecentRefusal,
  RulesState,
  ServiceSums,
} from "../recorder/snapshot.ts"

/** What all watched limiters have decided lately, in one process or in several. Contains only JSON values. */
export interface ActivityOverview {
  /** When the overview was made, in epoch milliseconds. */
  readonly atMs: number
  /** The services of the limiters, by name. */
  readonly services: readonly ServiceOverview[]
  /** What the overview lacks, such as other processes, and why, in sentences. Absent if nothing is missing. */
  readonly missing?: string
}

/** How many requests all watched limiters have decided lately. Contains only JSON values. */
export interface ActivitySums {
  /** When the sums were taken, in epoch milliseconds. */
  readonly atMs: number
  /** The services, by falling number of refusals in the last 300 seconds. */
  readonly services: readonly ServiceSums[]
  /** As of {@link ActivityOverview}. */
  readonly missing?: string
}

/** What the limiters of one service have decided, in all instances that reported. */
export interface ServiceOverview {
  /** Name of the service. */
  readonly service: string
  /** The recorders whose snapshots were merged. */
  readonly instances: readonly InstanceOverview[]
  /** The rules, in the order of the first instance. */
  readonly rules: readonly RuleOverview[]
  /**
   * The last refusals of all instances, latest first, at most 200. In an overview of many services, only those that refuse
   * most have more than five.
   */
  readonly refusals: readonly RecentRefusal[]
}

/** One process, or one limiter of it. */
export interface InstanceOverview {
  /** Identifies the recorder. */
  readonly instance: string
  /** When recording began, in epoch milliseconds. */
  readonly sinceMs: number
  /** When its snapshot was taken, in epoch milliseconds. */
  readonly atMs: number
  /** The state of the limiter. */
  readonly status: LimiterStatus
  /** The state of its rules. */
  readonly rulesStatus: RulesState
}

/** What one rule has decided in all instances. */
export interface RuleOverview {
  /** Name of the rule. The rules beyond the 200th are counted together as "(others)". */
  readonly rule: string
  /** Whether it was a shadow rule at its latest decision in each instance, so that it refuses nobody. */
  readonly shadow: boolean
  /** Requests in each of the last 300 seconds, oldest first. The last element is the second of `atMs`. */
  readonly seconds: OutcomeCounts
  /** Requests in each of the last 288 slots of five minutes, oldest first. The last element is the slot of `atMs`. */
  readonly slots: OutcomeCounts
  /** The clients that were refused most, by falling number of refusals; at most 256. */
  readonly refused: readonly LimitedClient[]
  /** Number of clients that were refused in the current and the previous slot. Above 256, an estimate within about 3 %. */
  readonly refusedClients: number
  /** The clients with the most requests, by falling number of requests; at most 32. */
  readonly busy: readonly BusyClient[]
}
