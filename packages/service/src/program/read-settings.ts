import type { Command } from "commander"
import type { ListenAddress } from "../decision-service.ts"
import { LOG_LEVELS } from "./log.ts"
import { NotAccepted } from "./not-accepted.ts"
import { givenText, type SettingName } from "./options.ts"
import { DECIDE_TOKENS, MIRRORS, REDIS_URL, readSecret, type Secret, TOKENS } from "./secrets.ts"
import {
  type DrainSettings,
  type RedisSettings,
  type Settings,
  SettingsError,
  type TableSettings,
  type TlsFiles,
} from "./settings.ts"
import { address, duration, isLoopback, matching, oneOf, type Read, url, whole, yesOrNo } from "./values.ts"

type Env = Readonly<Record<string, string | undefined>>

const FILE = matching(/^[^\0]+$/, "is not a valid path", "the path of a file")
const TABLE_NAME = matching(
  /^(?:[\w.-]{3,255}|arn:[\w.:/-]{1,1024})$/,
  "is not a valid table name",
  'a name of 3 to 255 letters, digits, "_", "-" and ".", or an ARN',
)
const REGION = matching(/^[a-z][a-z\d-]{1,31}$/, "is not a valid region", "a region such as eu-central-1")
const PREFIX = matching(
  /^(?!.*[{}])[\x20-\x7e]{1,64}$/,
  "is not a valid prefix",
  "up to 64 printable ASCII characters, except { and }",
)
/** The time after which counts are written back. */
const WRITE_BACK_MS = 100
const WRITE_BACK: Read<number | undefined> = (text) => {
  if (text === "off") return undefined
  if (text === "on") return WRITE_BACK_MS
  try {
    return duration(1)(text)
  } catch {
    throw new NotAccepted("is not a valid choice", "on, off, or a time with its unit: 100ms, 1s")
  }
}
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
  const redisUrls = reader.secret(REDIS_URL)
  const mirrors = reader.secret(MIRRORS)
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
    rules: readRules(reader, allowInvalidRules),
    allowInvalidRules,
    redis: readRedis(reader, redisUrls, mirrors),
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

function readRedis(
  reader: Reader,
  urls: readonly string[] | undefined,
  mirrors: Readonly<Record<string, readonly string[]>> | undefined,
): RedisSettings | undefined {
  const prefix = reader.optional("redisPrefix", PREFIX)
  const isCluster = reader.value("redisCluster", yesOrNo)
  const lease = reader.value("lease", yesOrNo)
  const writeBackMs = reader.optional("writeBack", WRITE_BACK)
  if (lease === true && writeBackMs !== undefined) {
    reader.refuse("writeBack", "is given together with --lease", "either --lease or --write-back")
  }
  if (urls !== undefined) {
    const wrong = isCluster === false ? wrongServer : wrongNodes
    const problem = wrong(urls)
    if (problem !== undefined) reader.refuseSecret(REDIS_URL, ...problem)
    const earlier = [...urls]
    for (const [name, some] of Object.entries(mirrors ?? {})) {
      const [is, accepted] = wrong(some) ?? twiceNamed(some, earlier) ?? []
      if (is !== undefined && accepted !== undefined) {
        reader.refuseSecret(MIRRORS, `of ${JSON.stringify(name)} ${is}`, accepted)
      }
      earlier.push(...some)
    }
    return { urls, isCluster, prefix: prefix ?? "", mirrors: mirrors ?? {}, lease, writeBackMs }
  }
  // An invalid URL is already reported.
  if (reader.hasGiven(REDIS_URL)) return undefined
  for (const [setting, isGiven] of [
    ["redisPrefix", prefix !== undefined],
    ["redisCluster", isCluster === true],
    ["lease", lease === true],
    ["writeBack", writeBackMs !== undefined],
  ] as const) {
    if (isGiven) reader.refuse(setting, "is given without REDIS_URL", "this setting together with REDIS_URL")
  }
  if (mirrors !== undefined) {
    reader.refuseSecret(MIRRORS, "is given without REDIS_URL", "this setting together with REDIS_URL")
  }
  return undefined
}

type SettingProblem = readonly [is: string, accepted: string]

/** In the same Redis, all units would count twice. */
function twiceNamed(some: readonly string[], others: readonly string[]): SettingProblem | undefined {
  const places = new Set(others.map(placeOf))
  if (!some.some((url) => places.has(placeOf(url)))) return undefined
  return ["is the Redis of REDIS_URL or of another data center", "a Redis of its own for each data center"]
}

function placeOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url)
  const database = searchParams.get("db") ?? pathname.slice(1)
  return `${hostname.toLowerCase()}:${port === "" ? "6379" : port}/${Number(database)}`
}

function wrongServer(urls: readonly string[]): SettingProblem | undefined {
  if (urls.length > 1) return ["names several servers", "one server, or several with --redis-cluster"]
  const { pathname, searchParams } = new URL(urls[0] as string)
  // Otherwise ioredis would select another database than the intended one, or throw an uncatchable error after it has
  // connected.
  const databases = [pathname.slice(1), searchParams.get("db") ?? ""]
  if (databases.every((each) => /^\d*$/.test(each))) return undefined
  return ["names a database that is not a number", "redis://user:password@host:6379/0"]
}

/**
 * Returns the first problem with the nodes of a cluster. ioredis would silently ignore these parts of the URLs, which
 * is hard to find during an outage.
 */
function wrongNodes(urls: readonly string[]): SettingProblem | undefined {
  const nodes = urls.map((url) => new URL(url))
  if (nodes.some(({ pathname, search }) => !/^\/?0?$/.test(pathname) || search !== ""))
    return [
      "names a database or parameters, which a cluster does not support",
      "redis://user:password@host:6379",
    ]
  if (new Set(nodes.map(({ protocol, username, password }) => `${protocol}${username}:${password}`)).size > 1)
    return [
      "names nodes that differ in user, password or TLS",
      "the same user, password and TLS for all nodes",
    ]
  return undefined
}

function readDrain(reader: Reader, isLocal: boolean): DrainSettings {
  const pauseMs = reader.optional("drainPause", duration(0)) ?? (isLocal ? 0 : 5_000)
  return { pauseMs, timeMs: reader.value("drainTime", duration(1)) }
}

/** True if all addresses are loopback addresses. An invalid address is undefined here, and already reported. */
function areLoopback(...addresses: readonly (ListenAddress | undefined)[]): boolean {
  return addresses.every((each) => each !== undefined && isLoopback(each))
}

/** Reads settings one by one, and collects all problems. */
class Reader {
  readonly problems: string[] = []
  readonly #command: Command
  readonly #env: Env

  constructor(command: Command, env: Env) {
    this.#command = command
    this.#env = env
  }

  /** Reads a setting that has a default. An invalid text is recorded as a problem, and the result is undefined. */
  value<T>(setting: SettingName, readText: Read<T>): T {
    return this.optional(setting, readText) as T
  }

  optional<T>(setting: SettingName, readText: Read<T>): T | undefined {
    const { name, text } = givenText(this.#command, setting)
    if (text === undefined) return undefined
    return this.#attempt(`${name}: ${JSON.stringify(text)}`, () => readText(text))
  }

  isGiven(setting: SettingName): boolean {
    return !givenText(this.#command, setting).isDefault
  }

  secret<T>(secret: Secret<T>): T | undefined {
    return this.#attempt(`${secret.variable}: its value (not shown)`, () => readSecret(secret, this.#env))
  }

  hasGiven({ variable, file }: Secret<unknown>): boolean {
    return (this.#env[variable] ?? "") !== "" || (this.#env[file] ?? "") !== ""
  }

  refuse(setting: SettingName, is: string, accepted: string): void {
    const { name, text } = givenText(this.#command, setting)
    this.problems.push(`${name}: ${JSON.stringify(text)} ${is}; accepted: ${accepted}`)
  }

  refuseSecret({ variable }: Secret<unknown>, is: string, accepted: string): void {
    this.problems.push(`${variable}: its value (not shown) ${is}; accepted: ${accepted}`)
  }

  /** Records a missing setting. A setting that was given and is invalid is already reported. */
  missing(setting: SettingName, why: string): void {
    const { name, text } = givenText(this.#command, setting)
    if (text === undefined) this.problems.push(`${name}: is missing; ${why}`)
  }

  #attempt<T>(what: string, action: () => T): T | undefined {
    try {
      return action()
    } catch (error) {
      if (!(error instanceof NotAccepted)) throw error
      this.problems.push(`${what} ${error.message}; accepted: ${error.accepted}`)
      return undefined
    }
  }
}
