import type { LimiterStatus, Refusal } from "@sluice/core"

/** How a rule decided a request. */
export type DecisionOutcome =
  /** Admitted within the limit. */
  | "admitted"
  /** Refused. */
  | "refused"
  /** Admitted, although the rule would have refused it, because the rule is in shadow mode. */
  | "shadowed"
  /** Admitted above the limit, by soft or elastic throttling. */
  | "overLimit"
  /** Decided without the shared store, whether admitted or refused. Counted in addition to its other outcome. */
  | "degraded"

/** All outcomes, in the order in which they are shown. */
export const OUTCOMES: readonly DecisionOutcome[] = [
  "admitted",
  "refused",
  "shadowed",
  "overLimit",
  "degraded",
]

/** Requests by outcome. */
export type OutcomeTotals = { readonly [Name in DecisionOutcome]: number }

/** No requests. */
export const NOTHING: OutcomeTotals = { admitted: 0, refused: 0, shadowed: 0, overLimit: 0, degraded: 0 }

/** How many requests the limiters of a service have decided lately. A request counts once for each of its rules. */
export interface ServiceSums {
  /** Name of the service. */
  readonly service: string
  /** How many recorders the sums include. */
  readonly instances: number
  /** Since when all of them have recorded, in epoch milliseconds. */
  readonly sinceMs: number
  /** Requests in the last 300 seconds. */
  readonly seconds: OutcomeTotals
  /** Requests in the last 288 slots of five minutes: one day. */
  readonly slots: OutcomeTotals
}

/** Number of seconds that are counted one by one: five minutes. */
export const SECONDS = 300
/** Length of a slot in milliseconds: five minutes, which begin at multiples of five minutes since the epoch. */
export const SLOT_MS = 300_000
/** Number of slots: one day. */
export const SLOTS = 288

/**
 * Requests in equal spans of time, oldest first. Only outcomes that have occurred have a member. Each array ends with
 * the current span, and leaves out the zeros before its first request.
 */
export type OutcomeCounts = { readonly [Name in DecisionOutcome]?: readonly number[] }

/** A client that a rule has refused. */
export interface LimitedClient {
  /**
   * The client's part of the counter's key: the value of the rule's field, such as an address. "@ip:192.0.2.7" for a
   * client without the field, "@3:pro1:7" for the values "pro" and "7" of two fields, and "#" with a hash of long values.
   */
  readonly key: string
  /** Refusals in the current and the previous slot. At most `error` too high, never too low. */
  readonly refusals: number
  /** By how much `refusals` may be too high. 0 while the rule refuses fewer than 256 clients in each slot. */
  readonly error: number
  /** Time of the latest refusal, in epoch milliseconds. */
  readonly lastMs: number
  /** When the client may try again by its latest refusal, in epoch milliseconds. `null` for a client that never may. */
  readonly untilMs: number | null
  /** The reason of the latest refusal. */
  readonly reason: Refusal
}

/** A client with many requests, of which about every 16th is counted. */
export interface BusyClient {
  /** The values of the rule's fields, as in {@link LimitedClient}. */
  readonly key: string
  /**
   * Estimated requests in the current and the previous slot. Too low rather than too high, because requests that may be
   * those of other clients are left out.
   */
  readonly requests: number
}

/** What one rule has decided in one process. */
export interface RuleActivity {
  /** Name of the rule. The rules beyond the 200th are counted together as "(others)". */
  readonly rule: string
  /** Whether it was a shadow rule at its latest decision. "(others)" is none. */
  readonly shadow: boolean
  /** Requests in each of the last 300 seconds. */
  readonly seconds: OutcomeCounts
  /** Requests in each of the last 288 slots. */
  readonly slots: OutcomeCounts
  /** The clients that were refused most, at most 256, by falling number of refusals. */
  readonly refused: readonly LimitedClient[]
  /** The most refusals that a client may have that `refused` does not contain. 0 if `refused` is complete. */
  readonly unlistedRefusals: number
  /** The clients with the most requests, at most 32, by falling number of requests. */
  readonly busy: readonly BusyClient[]
  /** Number of clients that were refused in the current and the previous slot. Estimated if `refused` is incomplete. */
  readonly refusedClients?: number
  /**
   * The registers of a HyperLogLog of these clients, in base64. Clients may choose keys for which the registers are wrong,
   * but not `refusedClients`.
   */
  readonly registers?: string
}

/** The name under which the rules beyond the 200th are counted together. */
export const OTHERS = "(others)"

/** One refusal. */
export interface RecentRefusal {
  /** Epoch milliseconds. */
  readonly atMs: number
  /** Name of the rule that refused. Empty if no rules were loaded, and if the reason is "group". */
  readonly rule: string
  /** The values of the rule's fields. For the reason "group", those of the binding rule. */
  readonly key: string
  /** The reason of the refusal. */
  readonly reason: Refusal
  /** Milliseconds until the request fits; `null` if it never does. */
  readonly retryAfterMs: number | null
  /** The sentence of `explainDecision`. */
  readonly text: string
}

/** What one limiter of one process has decided lately. Contains only JSON values. */
export interface ActivitySnapshot {
  /** Identifies the recorder: a random text. */
  readonly instance: string
  /** The service of the limiter. */
  readonly service: string
  /** When recording began, in epoch milliseconds. */
  readonly sinceMs: number
  /** When the snapshot was taken, in epoch milliseconds. */
  readonly atMs: number
  /** The rules that have decided requests. */
  readonly rules: readonly RuleActivity[]
  /** The last 200 refusals, latest first. */
  readonly refusals: readonly RecentRefusal[]
  /** The state of the limiter. */
  readonly status: LimiterStatus
  /** The state of its rules. */
  readonly rulesStatus: RulesState
}

/** The state of a limiter's rules: `limiter.rules` as JSON. */
export interface RulesState {
  /** Version of the stored document, if it has one. */
  readonly version?: number
  /** The latest time at which the rules matched the source, in epoch milliseconds. Absent for rules in code. */
  readonly loadedAtMs?: number
  /** Whether loading fails repeatedly and the rules are old. */
  readonly isStale: boolean
  /** What is wrong with the rules in the source. Empty if nothing is. */
  readonly problems: readonly string[]
}
