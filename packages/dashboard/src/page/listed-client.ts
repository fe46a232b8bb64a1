import type { LimitedClient } from "../recorder/snapshot.ts"

/** A client of a rule that the search has found. */
export interface ListedClient {
  readonly service: string
  readonly rule: string
  readonly key: string
  /** Absent if the client is not in the list of refused clients. */
  readonly refused?: LimitedClient
  /** Absent if the client is not in the list of busy clients. */
  readonly requests?: number
}
