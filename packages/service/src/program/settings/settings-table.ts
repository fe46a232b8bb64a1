import type { HeaderDialect } from "@sluice/core/adapters"
import { LOG_LEVELS } from "../log.ts"
import { mirrorUrls, redisUrls, tokensByService } from "./secrets.ts"
import {
  address,
  duration,
  type Kind,
  matching,
  NotAccepted,
  oneOf,
  proxies,
  url,
  whole,
  yesOrNo,
} from "./values.ts"

/** A row of the table of settings. `Value` includes undefined if the setting is optional. */
export interface Setting<Value> {
  /**
   * The flag and its value as shown in the help, such as "--poll <time>". Undefined for a secret, because everyone on
   * the machine can see the flags of a program.
   */
  readonly flags?: string
  /**
   * The environment variable. For a secret, the variable with the suffix "_FILE" contains the path of a file with the
   * secret.
   */
  readonly variable: string
  /** The description in the help. */
  readonly says: string
  readonly kind: Kind<Value>
  /** The default, as a string that is parsed like a given value. */
  readonly otherwise?: string
}

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
const DIALECT = oneOf("draft-11", "next", "triple", "legacy", "none")
const HEADERS: Kind<HeaderDialect | false> = {
  read(text) {
    const dialect = DIALECT.read(text)
    return dialect === "none" ? false : dialect
  },
}
const ON_OR_OFF: Kind<boolean> = { read: (text) => oneOf("on", "off").read(text) === "on" }
/** The kind of `--write-back`, whose value is the time after which counts are written back. */
const WRITE_BACK: Kind<number | undefined> = {
  read(text) {
    if (text === "off") return undefined
    try {
      return duration(1).read(text === "on" ? "100ms" : text)
    } catch {
      throw new NotAccepted("is not a valid choice", "on, off, or a time with its unit: 100ms, 1s")
    }
  },
}
const ENDPOINT = url(["http:", "https:"], "a URL such as http://localhost:8000")
const BYTES = whole(1_024, 64 * 1024 * 1024)
const MANY = whole(1, 1_000_000)

/** All settings, in the order of the help. */
export const SETTINGS = {
  grpc: {
    ...option("--grpc <host:port>", "address of the gRPC server", address, "127.0.0.1:50051"),
    variable: "SLUICE_GRPC_ADDRESS",
  },
  http: {
    ...option(
      "--http <host:port>",
      "address of the HTTP server, which takes JSON",
      address,
      "127.0.0.1:8080",
    ),
    variable: "SLUICE_HTTP_ADDRESS",
  },
  operations: {
    ...option(
      "--operations <host:port>",
      "address of /livez, /readyz and /metrics; keep it off the internet",
      address,
      "127.0.0.1:8081",
    ),
    variable: "SLUICE_OPERATIONS_ADDRESS",
  },
  tlsCert: optional("--tls-cert <file>", "certificate chain for gRPC and HTTP (PEM) (default: no TLS)", FILE),
  tlsKey: optional("--tls-key <file>", "private key of the certificate (PEM)", FILE),
  tlsClientCa: optional(
    "--tls-client-ca <file>",
    "require client certificates that this authority has signed (PEM)",
    FILE,
  ),
  trustedProxies: option(
    "--trusted-proxies <addresses>",
    "addresses, networks and names such as private, separated by commas, of the gateways that may call /check and the proxies before them",
    proxies,
    "loopback",
  ),
  rules: optional(
    "--rules <file>",
    "read rules from this YAML or JSON file, and again when it changes",
    FILE,
  ),
  allowInvalidRules: option(
    "--allow-invalid-rules [boolean]",
    "start with only the valid rules if the file has invalid ones",
    yesOrNo,
    "false",
  ),
  table: optional(
    "--table <name>",
    "read rules from this DynamoDB table, in which they can be registered",
    TABLE_NAME,
  ),
  region: {
    ...optional(
      "--region <name>",
      "AWS region of the table (default: the AWS SDK's: AWS_REGION, profile)",
      REGION,
    ),
    variable: "SLUICE_DYNAMODB_REGION",
  },
  endpoint: {
    ...optional("--endpoint <url>", "URL of another DynamoDB, such as http://localhost:8000", ENDPOINT),
    variable: "SLUICE_DYNAMODB_ENDPOINT",
  },
  createTable: option(
    "--create-table [boolean]",
    "create the table at the start if it is missing",
    yesOrNo,
    "false",
  ),
  pollMs: option("--poll <time>", "how often to read the table again", duration(1), "30s"),
  redisCluster: option(
    "--redis-cluster [boolean]",
    "REDIS_URL is a node of a Redis Cluster, or several separated by commas",
    yesOrNo,
    "false",
  ),
  redisPrefix: optional("--redis-prefix <text>", "prefix of every key in Redis (default: none)", PREFIX),
  lease: option(
    "--lease [boolean]",
    "grant requests under limits of 1000 or more from units that are booked in Redis ahead of time",
    yesOrNo,
    "false",
  ),
  writeBackMs: option(
    "--write-back <on|off|time>",
    "decide by counts of this process, and write them to Redis later: after 100 ms (on), or after this time",
    WRITE_BACK,
    "off",
  ),
  storeTimeoutMs: option(
    "--store-timeout <time>",
    "how long to wait for Redis before deciding without it",
    duration(1),
    "50ms",
  ),
  onStoreFailure: option(
    "--on-store-failure <what>",
    "how to decide without Redis: local (count in this process), allow or deny",
    oneOf("local", "allow", "deny"),
    "local",
  ),
  instances: option(
    "--instances <n>",
    "number of processes that share Redis; without Redis, each admits its share of a limit",
    MANY,
    "1",
  ),
  reservationMs: option(
    "--reservation-time <time>",
    "how long the text of a reservation can be settled or renewed, from 1s to 10m",
    duration(1_000, 600_000),
    "10m",
  ),
  unknownServices: option(
    "--unknown-services <what>",
    "what to do with requests to a service without rules: forward or refuse",
    oneOf("forward", "refuse"),
    "forward",
  ),
  activity: option(
    "--activity [boolean]",
    "record who is refused and by which rule, for ListClients, Overview and sluice clients top",
    yesOrNo,
    "false",
  ),
  dashboard: option(
    "--dashboard <who>",
    "show who is refused on a page at /limits/ of the operations port: off, local (to browsers on this machine) or open (to all that reach the port); includes --activity",
    oneOf("off", "local", "open"),
    "off",
  ),
  headers: option(
    "--headers <dialect>",
    "rate limit headers for clients: draft-11, next, triple, legacy or none",
    HEADERS,
    "draft-11",
  ),
  maxMessageBytes: option(
    "--max-message-bytes <n>",
    "maximum length of a message with a single request",
    BYTES,
    "131072",
  ),
  maxBatchBytes: option(
    "--max-batch-bytes <n>",
    "maximum length of a batch, and of rules to register",
    BYTES,
    "4194304",
  ),
  maxUnfinishedBytes: option(
    "--max-unfinished-bytes <n>",
    "maximum memory of arriving requests, and the same for unanswered ones, on each of gRPC and HTTP; at least 8 batches",
    whole(1_024, 2 ** 32),
    "67108864",
  ),
  maxInFlight: option(
    "--max-in-flight <n>",
    "maximum single calls in flight on each of gRPC and HTTP, and the same for requests in batches and for held ones; more are refused",
    MANY,
    "1000",
  ),
  maxConnections: option(
    "--max-connections <n>",
    "maximum connections on each of gRPC and HTTP; more are closed immediately",
    MANY,
    "10000",
  ),
  maxConnectionsPerPeer: optional(
    "--max-connections-per-peer <n>",
    "maximum connections from one address or IPv6 /64; raise it for a gateway in front (default: a quarter of --max-connections)",
    MANY,
  ),
  arrivalMs: option(
    "--arrival-time <time>",
    "time in which the first request of a connection, and each request, must arrive",
    duration(1),
    "10s",
  ),
  idleMs: option("--idle-time <time>", "how long a connection without calls stays open", duration(1), "5m"),
  maxRequests: option(
    "--max-requests <n>",
    "maximum requests in one ShouldForwardRequests call",
    MANY,
    "10000",
  ),
  plainCalls: option(
    "--plain-calls <on|off>",
    "on: answer uncompressed gRPC calls without grpc-js, at half its CPU time; off: use grpc-js for all calls",
    ON_OR_OFF,
    "on",
  ),
  drainPauseMs: optional(
    "--drain-pause <time>",
    "how long to report not ready before closing, so that load balancers notice (default: 5s; 0 if all addresses are loopback)",
    duration(0),
  ),
  drainMs: option(
    "--drain-time <time>",
    "how long to wait after that for calls in flight, before they are cut off",
    duration(1),
    "20s",
  ),
  logLevel: option(
    "--log-level <level>",
    "least severe level to log: fatal, error, warn, info, debug, trace or silent",
    oneOf(...LOG_LEVELS),
    "info",
  ),
  redis: secret(
    "REDIS_URL",
    "keep counters in this Redis: redis://user:password@host:6379/0, or rediss:// with TLS",
    redisUrls,
  ),
  mirrors: secret(
    "SLUICE_MIRRORS",
    'also count in the Redis of other data centers: a JSON object of URLs: {"eu": "redis://host:6379"}',
    mirrorUrls,
  ),
  tokens: secret(
    "SLUICE_TOKENS",
    'tokens for registering rules: a JSON object with a token for each service, "*" for all: {"1": "…"}',
    tokensByService,
  ),
  decideTokens: secret(
    "SLUICE_DECIDE_TOKENS",
    "tokens for asking for decisions, in the same form; without them, every caller may ask",
    tokensByService,
  ),
} satisfies Readonly<Record<string, Setting<unknown>>>

/** The name of a setting. */
export type SettingName = keyof typeof SETTINGS

/** The validated settings of the program, with the value of each row. */
export type Settings = {
  readonly [Name in SettingName]: (typeof SETTINGS)[Name] extends Setting<infer Value> ? Value : never
}

/** The names and rows of all settings. */
export const ROWS = Object.entries(SETTINGS) as [SettingName, Setting<unknown>][]

/** Creates the row of a setting whose variable is derived from its flag, as SLUICE_LOG_LEVEL from --log-level. */
function option<Value>(flags: string, says: string, kind: Kind<Value>, otherwise: string): Setting<Value> {
  const variable = flagOf(flags).replace("--", "sluice-").replaceAll("-", "_").toUpperCase()
  return { flags, variable, says, kind, otherwise }
}

/** Creates the row of an optional setting. */
function optional<Value>(flags: string, says: string, kind: Kind<Value>): Setting<Value | undefined> {
  const { otherwise: _, ...row } = option(flags, says, kind, "")
  return row
}

function secret<Value>(variable: string, says: string, kind: Kind<Value>): Setting<Value | undefined> {
  return { variable, says, kind }
}

/** Returns the flag without its value. */
export function flagOf(flags: string): string {
  return flags.split(" ", 1)[0] as string
}
