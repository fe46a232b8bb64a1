import type { Command } from "commander"
import type { ListenAddress } from "../sockets/listening.ts"
import { LOG_LEVELS } from "./log.ts"
import { readRedis } from "./read-redis.ts"
import { type Env, Reader } from "./reader.ts"
import { DECIDE_TOKENS, TOKENS } from "./secrets.ts"
import {
  type DrainSettings,
  type Settings,
  SettingsError,
  type TableSettings,
  type TlsFiles,
} from "./settings.ts"
import { address, duration, isLoopback, matching, oneOf, proxies, url, whole, yesOrNo } from "./values.ts"

const FILE = matching(/^[^\0]+$/, "is not a valid path", "the path of a file")
const TABLE_NAME = matching(
  /^(?:[\w.-]{3,255}|arn:[\w.:/-]{1,1024})$/,
  "is not a valid table name",
  'a name of 3 to 255 letters, digits, "_", "-" and ".", or an ARN',
)
const REGION = matching(/^[a-z][a-z\d-]{1,31}$/, "is not a valid region", "a region such as eu-central-1")
const ENDPOINT = url(["http:", "https:"], "a URL such as http://localhost:8000")
const MOST_BYTES = 64 * 1024 * 1024

/** Reads the settings from a parsed command line. Throws SettingsError with all problems. */
export function readSettings(command: Command, env: Env): Settings {
  const reader = new Reader(command, env)
  const settings = read(reader)
  if (reader.problems.length > 0) throw new SettingsError(reader.problems)
  return settings
}

function read(reader: Reader): Settings {
  const grpc = reader.value("grpc", address)
  const http = reader.value("http", address)
  const operations = reader.value("operations", address)
  const allowInvalidRules = reader.value("allowInvalidRules", yesOrNo)
  const maxMessageBytes = reader.value("maxMessageBytes", whole(1_024, MOST_BYTES))
  const maxBatchBytes = reader.value("maxBatchBytes", whole(1_024, MOST_BYTES))
  const maxUnfinishedBytes = reader.value("maxUnfinishedBytes", whole(1_024, 64 * MOST_BYTES))
  const leastUnfinished = 8 * Math.max(maxMessageBytes, maxBatchBytes)
  if (maxUnfinishedBytes < leastUnfinished) {
    // A connection may use a quarter of these bytes. A message in an unknown number of pieces takes twice its length.
    const accepted = `at least ${leastUnfinished} (8 times the longest message)`
    reader.refuse("maxUnfinishedBytes", "is too small", accepted)
  }
  const maxConnections = reader.value("maxConnections", whole(1, 1_000_000))
  const headers = reader.value("headers", oneOf("draft-11", "next", "triple", "legacy", "none"))
  return {
    grpc,
    http,
    operations,
    tls: readTlsFiles(reader),
    trustedProxies: reader.value("trustedProxies", proxies),
    redis: readRedis(reader),
    rules: readRules(reader, allowInvalidRules),
    allowInvalidRules,
    tokens: reader.secret(TOKENS) ?? {},
    decideTokens: reader.secret(DECIDE_TOKENS) ?? {},
    isRegistrationOpen: areLoopback(grpc, http),
    unknownServices: reader.value("unknownServices", oneOf("forward", "refuse")),
    headers: headers === "none" ? false : headers,
    onStoreFailure: reader.value("onStoreFailure", oneOf("local", "allow", "deny")),
    storeTimeoutMs: reader.value("storeTimeout", duration(1)),
    instances: reader.value("instances", whole(1, 1_000_000)),
    bounds: {
      maxMessageBytes,
      maxBatchBytes,
      maxUnfinishedBytes,
      maxInFlight: reader.value("maxInFlight", whole(1, 1_000_000)),
      maxConnections,
      maxConnectionsPerPeer:
        reader.optional("maxConnectionsPerPeer", whole(1, 1_000_000)) ?? Math.ceil(maxConnections / 4),
      idleMs: reader.value("idleTime", duration(1)),
      arrivalMs: reader.value("arrivalTime", duration(1)),
      maxRequests: reader.value("maxRequests", whole(1, 1_000_000)),
    },
    plainCalls: reader.value("plainCalls", oneOf("on", "off")) === "on",
    drain: readDrain(reader, areLoopback(grpc, http, operations)),
    logLevel: reader.value("logLevel", oneOf(...LOG_LEVELS)),
  }
}

function readTlsFiles(reader: Reader): TlsFiles | undefined {
  const cert = reader.optional("tlsCert", FILE)
  const key = reader.optional("tlsKey", FILE)
  const clientCa = reader.optional("tlsClientCa", FILE)
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined
  if (cert === undefined) reader.missing("tlsCert", "TLS needs a certificate and its key")
  if (key === undefined) reader.missing("tlsKey", "TLS needs a certificate and its key")
  return { cert: cert as string, key: key as string, clientCa }
}

/** Reads where the rules are: in a file or in a table. */
function readRules(reader: Reader, allowInvalidRules: boolean): string | TableSettings {
  const file = reader.optional("rules", FILE)
  const name = reader.optional("table", TABLE_NAME)
  const table = {
    region: reader.optional("region", REGION),
    endpoint: reader.optional("endpoint", ENDPOINT),
    mayCreate: reader.value("createTable", yesOrNo),
    pollMs: reader.value("poll", duration(1)),
  }
  if (file !== undefined && name !== undefined) {
    reader.refuse("table", "is given together with --rules", "either --rules or --table")
  }
  if (reader.isGiven("table") && allowInvalidRules === true) {
    reader.refuse("allowInvalidRules", "is given together with --table", "only with --rules")
  }
  // An invalid table name is already reported. The options for the table are not a second mistake.
  if (reader.isGiven("table")) return { name: name as string, ...table }
  for (const [setting, isGiven] of [
    ["region", table.region !== undefined],
    ["endpoint", table.endpoint !== undefined],
    ["createTable", table.mayCreate === true],
    // An invalid time is already reported.
    ["poll", table.pollMs !== undefined && reader.isGiven("poll")],
  ] as const) {
    if (isGiven) reader.refuse(setting, "is given without a table", "this setting together with --table")
  }
  if (file === undefined) reader.missing("rules", "give a file with rules, or a table with --table")
  return file as string
}

function readDrain(reader: Reader, isLocal: boolean): DrainSettings {
  const pauseMs = reader.optional("drainPause", duration(0)) ?? (isLocal ? 0 : 5_000)
  return { pauseMs, timeMs: reader.value("drainTime", duration(1)) }
}

/** True if all addresses are loopback addresses. An invalid address is undefined here, and already reported. */
function areLoopback(...addresses: readonly (ListenAddress | undefined)[]): boolean {
  return addresses.every((each) => each !== undefined && isLoopback(each))
}
