import type { HeaderDialect, OnStoreFailure } from "@sluice/core"
import type { UnknownServices } from "../deciding/unregistered.ts"
import type { Bounds, ListenAddress } from "../decision-service.ts"
import type { LogLevel } from "./log.ts"

/** What the program was told, checked, with every default filled in. */
export interface Settings {
  readonly grpc: ListenAddress
  readonly http: ListenAddress
  readonly operations: ListenAddress
  readonly tls: TlsFiles | undefined
  /** Where rules are: a file or a table. */
  readonly rules: string | TableSettings
  /** Whether to start although the file has invalid rules. */
  readonly allowInvalidRules: boolean
  /** Undefined: counters are in memory. */
  readonly redis: RedisSettings | undefined
  /** Tokens by service, of callers that register rules. */
  readonly tokens: Readonly<Record<string, string>>
  /** Tokens by service, of callers that have requests decided. Empty: anybody may. */
  readonly decideTokens: Readonly<Record<string, string>>
  /** Whether anybody may register where there are no tokens. */
  readonly isRegistrationOpen: boolean
  readonly unknownServices: UnknownServices
  readonly headers: HeaderDialect | false
  readonly onStoreFailure: OnStoreFailure
  readonly storeTimeoutMs: number
  readonly instances: number
  readonly bounds: Bounds
  /** Whether plain gRPC calls are answered beside grpc-js. */
  readonly plainCalls: boolean
  readonly drain: DrainSettings
  readonly logLevel: LogLevel
}

/** Where counters are that several processes share. */
export interface RedisSettings {
  /** Of the server, or of some nodes of a cluster, at least one. They may have a password in them. */
  readonly urls: readonly string[]
  readonly isCluster: boolean
  readonly prefix: string
}

/** A table in DynamoDB; what is undefined comes from where the AWS SDK looks for it. */
export interface TableSettings {
  readonly name: string
  readonly region: string | undefined
  readonly endpoint: string | undefined
  /** Whether to create it where it is missing. */
  readonly mayCreate: boolean
  readonly pollMs: number
}

/** Files of PEM. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
  /** Who is to have signed the certificates of callers, which they need then. */
  readonly clientCa: string | undefined
}

/** How it goes down. */
export interface DrainSettings {
  /** Between "not ready" and the closing of the doors. */
  readonly pauseMs: number
  /** For what is in flight then. */
  readonly timeMs: number
}

/** Settings that cannot be used: each problem is a line that names the setting and what would be accepted. */
export class SettingsError extends Error {
  override readonly name = "SettingsError"
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join("\n"))
    this.problems = problems
  }
}
