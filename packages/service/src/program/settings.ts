import type { OnStoreFailure } from "@sluice/core"
import type { HeaderDialect } from "@sluice/core/adapters"
import type { UnknownServices } from "../deciding/unregistered.ts"
import type { Bounds } from "../decision-service.ts"
import type { ListenAddress } from "../sockets/listening.ts"
import type { LogLevel } from "./log.ts"

/** The validated settings of the program, with every default filled in. */
export interface Settings {
  readonly grpc: ListenAddress
  readonly http: ListenAddress
  readonly operations: ListenAddress
  readonly tls: TlsFiles | undefined
  /** Addresses of the gateways that may describe requests, and of the proxies in front of them. */
  readonly trustedProxies: readonly string[]
  /** The file or the table with the rules. */
  readonly rules: string | TableSettings
  /** Whether to start even if the file has invalid rules. */
  readonly allowInvalidRules: boolean
  /** Undefined if counters are kept in memory. */
  readonly redis: RedisSettings | undefined
  /** Tokens by service, for callers that register rules. */
  readonly tokens: Readonly<Record<string, string>>
  /** Tokens by service, for callers that ask for decisions. If empty, any caller may. */
  readonly decideTokens: Readonly<Record<string, string>>
  /** Whether any caller may register rules if there are no tokens. */
  readonly isRegistrationOpen: boolean
  readonly unknownServices: UnknownServices
  readonly headers: HeaderDialect | false
  readonly onStoreFailure: OnStoreFailure
  readonly storeTimeoutMs: number
  readonly instances: number
  readonly bounds: Bounds
  /** Whether the service answers plain gRPC calls itself, without grpc-js. */
  readonly plainCalls: boolean
  readonly drain: DrainSettings
  readonly logLevel: LogLevel
}

/** The Redis server or cluster with the counters that several processes share. */
export interface RedisSettings {
  /** URL of the server, or of at least one node of a cluster. The URLs may contain a password. */
  readonly urls: readonly string[]
  readonly isCluster: boolean
  readonly prefix: string
  /** The URLs of Redis in other data centers, by name. Like `urls`, they name servers or nodes of clusters. */
  readonly mirrors: Readonly<Record<string, readonly string[]>>
  /** Whether large limits are leased. */
  readonly lease: boolean
  /** Milliseconds after which counts are written back to Redis. Undefined if Redis decides. */
  readonly writeBackMs: number | undefined
}

/** A table in DynamoDB. The AWS SDK looks up the values that are undefined. */
export interface TableSettings {
  readonly name: string
  readonly region: string | undefined
  readonly endpoint: string | undefined
  /** Whether to create the table if it does not exist. */
  readonly mayCreate: boolean
  readonly pollMs: number
}

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
  /** The authority that must have signed the certificates of callers. If undefined, callers need no certificate. */
  readonly clientCa: string | undefined
}

/** The timing of a shutdown. */
export interface DrainSettings {
  /** Milliseconds between "not ready" and closing the servers. */
  readonly pauseMs: number
  /** Milliseconds for the calls that are in flight by then. */
  readonly timeMs: number
}

/** An error for invalid settings. Each problem is a line that names the setting and the accepted values. */
export class SettingsError extends Error {
  override readonly name = "SettingsError"
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join("\n"))
    this.problems = problems
  }
}
