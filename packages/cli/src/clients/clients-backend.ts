import type { TopAnswer } from "../top-table.ts"

/** A client under one rule of a service. */
export interface CountedClient {
  readonly service: string
  readonly rule: string
  /** The values of the rule's fields. */
  readonly client: readonly string[]
}

/** What a rule has counted for a client, in the form of `ShowClient`. 64-bit numbers are strings, as in JSON. */
export interface ShownClient {
  readonly limit: string
  /** Units that are granted in the current period. Absent if there are none. */
  readonly granted?: string
  readonly remaining: string
  readonly refusal: string
  readonly retryAfterMs?: string
  readonly resetAfterMs: string
  readonly degraded: boolean
  readonly allowedByList: boolean
  /** Absent from older versions of the service. */
  readonly shadow?: boolean
  /** Empty if the counters are not stored in Redis. Absent from older versions of the service. */
  readonly key?: string
  /** Whether Redis contains the key. Absent if that is unknown. */
  readonly counted?: boolean
}

/** What is done to a client. */
export type ClientAction = "reset" | "block" | "unblock" | "grant"

/** Which clients to list. */
export interface TopQuery {
  /** Default: all services. The decision service lists only one. */
  readonly service?: string | undefined
  /** Default: all rules. */
  readonly rule?: string | undefined
  readonly limit?: number | undefined
}

/** How long to wait for a list. */
export interface TopWait {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

/** The clients that are refused most. */
export interface TopList {
  /** One answer for each service. */
  readonly services: readonly TopAnswer[]
  /** Why services or processes may be missing. Absent if none is. */
  readonly missing?: string
}

/** Where clients are counted: behind the decision service, or in the Redis of an app. */
export interface ClientsBackend {
  show(client: CountedClient): Promise<ShownClient>
  /**
   * Resolves with false if there was nothing to reset or to unblock, and with true if that is unknown. `amount` is the
   * length of a block, or the number of units to grant.
   */
  change(action: ClientAction, client: CountedClient, amount?: string): Promise<boolean>
  top(query: TopQuery, wait?: TopWait): Promise<TopList>
  close(): void
}
