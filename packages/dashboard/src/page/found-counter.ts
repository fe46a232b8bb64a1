import type { Refusal } from "@sluice/core"
import type { LimitedClient } from "../recorder/snapshot.ts"

/** The result of a search. */
export interface FoundCounters {
  /** When the clients were read, in epoch milliseconds of the server. */
  readonly atMs: number
  /** Whether the visitor may change clients: "token" if the visitor must send a token with each change. */
  readonly operator: "yes" | "token" | "no"
  /** The counters of the client: first those in the lists, then those of other rules. */
  readonly clients: readonly FoundCounter[]
  /** Number of further rules, which were not read. */
  readonly unread: number
}

/** The counter of a client under one rule. */
export interface FoundCounter {
  readonly service: string
  readonly rule: string
  /** The client's key, as the page shows it. */
  readonly key: string
  /** Identifies the client in a change. */
  readonly id: string
  /** Absent if the client is not in the list of refused clients. */
  readonly refused?: LimitedClient
  /** Absent if the client is not in the list of busy clients. */
  readonly requests?: number
  /** Whether other processes can use the same counter. */
  readonly isShared: boolean
  /** The current state, or the reason why it could not be read. */
  readonly state: ClientState | string
}

/** What a rule would decide about the client's next request. */
export type ClientState =
  /** The rule does not count the client, because the client is on its allow list. */
  | { readonly isCounted: false }
  | {
      readonly isCounted: true
      /** Whether the rule never refuses. */
      readonly shadow: boolean
      /** Whether the store did not respond, so that this process alone has counted. */
      readonly degraded: boolean
      /** Units in each window. */
      readonly limit: number
      readonly remaining: number
      /** Units that are granted in the current period, which the limit includes. Absent for a rule with a window. */
      readonly granted?: number
      /** Milliseconds until all units are available again. */
      readonly resetAfterMs: number
      /** Milliseconds until the rule admits a request, or until the block ends. `null` if never. */
      readonly retryAfterMs: number | null
      /** Absent if the rule admits the request. */
      readonly refusal?: Refusal
    }

/** What an operator does to a client. */
export type ChangeAction = "reset" | "blocked" | "unblocked" | "granted"

/** A change of a client, as the page sends it. */
export interface AskedChange {
  readonly action: ChangeAction
  readonly service: string
  readonly rule: string
  /** The `id` of the found client. */
  readonly id: string
  /** The text of the search. A client outside of the lists has no other name. */
  readonly text: string
  /** The duration of a block. Empty for other changes. */
  readonly for: string
  /** The number of units to grant. Empty for other changes. */
  readonly units: string
}
