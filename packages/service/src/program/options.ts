import { Command, Option } from "commander"
import { DECIDE_TOKENS, MIRRORS, REDIS_URL, type Secret, TOKENS } from "./secrets.ts"

/** A setting with a flag and a variable. Its default is a text that is parsed like a given value. */
interface Setting {
  readonly flags: string
  readonly env: string
  readonly says: string
  readonly otherwise?: string
  /** Text in the help for a default that depends on other settings. */
  readonly default?: string
}

/** All settings, by commander's name for the flag. */
const SETTINGS = {
  grpc: {
    flags: "--grpc <host:port>",
    env: "SLUICE_GRPC_ADDRESS",
    says: "address of the gRPC server",
    otherwise: "127.0.0.1:50051",
  },
  http: {
    flags: "--http <host:port>",
    env: "SLUICE_HTTP_ADDRESS",
    says: "address of the HTTP server, which takes JSON",
    otherwise: "127.0.0.1:8080",
  },
  operations: {
    flags: "--operations <host:port>",
    env: "SLUICE_OPERATIONS_ADDRESS",
    says: "address of /livez, /readyz and /metrics; keep it off the internet",
    otherwise: "127.0.0.1:8081",
  },
  tlsCert: {
    flags: "--tls-cert <file>",
    env: "SLUICE_TLS_CERT",
    says: "certificate chain for gRPC and HTTP (PEM)",
    default: "no TLS",
  },
  tlsKey: { flags: "--tls-key <file>", env: "SLUICE_TLS_KEY", says: "private key of the certificate (PEM)" },
  tlsClientCa: {
    flags: "--tls-client-ca <file>",
    env: "SLUICE_TLS_CLIENT_CA",
    says: "require client certificates that this authority has signed (PEM)",
  },
  trustedProxies: {
    flags: "--trusted-proxies <addresses>",
    env: "SLUICE_TRUSTED_PROXIES",
    says: "addresses, networks and names such as private, separated by commas, of the gateways that may call /check and the proxies before them",
    otherwise: "loopback",
  },
  rules: {
    flags: "--rules <file>",
    env: "SLUICE_RULES",
    says: "read rules from this YAML or JSON file, and again when it changes",
  },
  allowInvalidRules: {
    flags: "--allow-invalid-rules [boolean]",
    env: "SLUICE_ALLOW_INVALID_RULES",
    says: "start with only the valid rules if the file has invalid ones",
    otherwise: "false",
  },
  table: {
    flags: "--table <name>",
    env: "SLUICE_TABLE",
    says: "read rules from this DynamoDB table, in which they can be registered",
  },
  region: {
    flags: "--region <name>",
    env: "SLUICE_DYNAMODB_REGION",
    says: "AWS region of the table",
    default: "the AWS SDK's: AWS_REGION, profile",
  },
  endpoint: {
    flags: "--endpoint <url>",
    env: "SLUICE_DYNAMODB_ENDPOINT",
    says: "URL of another DynamoDB, such as http://localhost:8000",
  },
  createTable: {
    flags: "--create-table [boolean]",
    env: "SLUICE_CREATE_TABLE",
    says: "create the table at the start if it is missing",
    otherwise: "false",
  },
  poll: {
    flags: "--poll <time>",
    env: "SLUICE_POLL",
    says: "how often to read the table again",
    otherwise: "30s",
  },
  redisCluster: {
    flags: "--redis-cluster [boolean]",
    env: "SLUICE_REDIS_CLUSTER",
    says: "REDIS_URL is a node of a Redis Cluster, or several separated by commas",
    otherwise: "false",
  },
  redisPrefix: {
    flags: "--redis-prefix <text>",
    env: "SLUICE_REDIS_PREFIX",
    says: "prefix of every key in Redis",
    default: "none",
  },
  lease: {
    flags: "--lease [boolean]",
    env: "SLUICE_LEASE",
    says: "grant requests under limits of 1000 or more from units that are booked in Redis ahead of time",
    otherwise: "false",
  },
  writeBack: {
    flags: "--write-back <on|off|time>",
    env: "SLUICE_WRITE_BACK",
    says: "decide by counts of this process, and write them to Redis later: after 100 ms (on), or after this time",
    otherwise: "off",
  },
  storeTimeout: {
    flags: "--store-timeout <time>",
    env: "SLUICE_STORE_TIMEOUT",
    says: "how long to wait for Redis before deciding without it",
    otherwise: "50ms",
  },
  onStoreFailure: {
    flags: "--on-store-failure <what>",
    env: "SLUICE_ON_STORE_FAILURE",
    says: "how to decide without Redis: local (count in this process), allow or deny",
    otherwise: "local",
  },
  instances: {
    flags: "--instances <n>",
    env: "SLUICE_INSTANCES",
    says: "number of processes that share Redis; without Redis, each admits its share of a limit",
    otherwise: "1",
  },
  unknownServices: {
    flags: "--unknown-services <what>",
    env: "SLUICE_UNKNOWN_SERVICES",
    says: "what to do with requests to a service without rules: forward or refuse",
    otherwise: "forward",
  },
  headers: {
    flags: "--headers <dialect>",
    env: "SLUICE_HEADERS",
    says: "rate limit headers for clients: draft-11, next, triple, legacy or none",
    otherwise: "draft-11",
  },
  maxMessageBytes: {
    flags: "--max-message-bytes <n>",
    env: "SLUICE_MAX_MESSAGE_BYTES",
    says: "maximum length of a message with a single request",
    otherwise: "131072",
  },
  maxBatchBytes: {
    flags: "--max-batch-bytes <n>",
    env: "SLUICE_MAX_BATCH_BYTES",
    says: "maximum length of a batch, and of rules to register",
    otherwise: "4194304",
  },
  maxUnfinishedBytes: {
    flags: "--max-unfinished-bytes <n>",
    env: "SLUICE_MAX_UNFINISHED_BYTES",
    says: "maximum memory of arriving requests, and the same for unanswered ones, on each of gRPC and HTTP; at least 8 batches",
    otherwise: "67108864",
  },
  maxInFlight: {
    flags: "--max-in-flight <n>",
    env: "SLUICE_MAX_IN_FLIGHT",
    says: "maximum single calls in flight on each of gRPC and HTTP, and the same for requests in batches and for held ones; more are refused",
    otherwise: "1000",
  },
  maxConnections: {
    flags: "--max-connections <n>",
    env: "SLUICE_MAX_CONNECTIONS",
    says: "maximum connections on each of gRPC and HTTP; more are closed at once",
    otherwise: "10000",
  },
  maxConnectionsPerPeer: {
    flags: "--max-connections-per-peer <n>",
    env: "SLUICE_MAX_CONNECTIONS_PER_PEER",
    says: "maximum connections from one address or IPv6 /64; raise it for a gateway in front",
    default: "a quarter of --max-connections",
  },
  arrivalTime: {
    flags: "--arrival-time <time>",
    env: "SLUICE_ARRIVAL_TIME",
    says: "time in which the first request of a connection, and each request, must arrive",
    otherwise: "10s",
  },
  idleTime: {
    flags: "--idle-time <time>",
    env: "SLUICE_IDLE_TIME",
    says: "how long a connection without calls stays open",
    otherwise: "5m",
  },
  maxRequests: {
    flags: "--max-requests <n>",
    env: "SLUICE_MAX_REQUESTS",
    says: "maximum requests in one ShouldForwardRequests call",
    otherwise: "10000",
  },
  plainCalls: {
    flags: "--plain-calls <on|off>",
    env: "SLUICE_PLAIN_CALLS",
    says: "on: answer uncompressed gRPC calls without grpc-js, at half its CPU time; off: use grpc-js for all calls",
    otherwise: "on",
  },
  drainPause: {
    flags: "--drain-pause <time>",
    env: "SLUICE_DRAIN_PAUSE",
    says: "how long to report not ready before closing, so that load balancers notice",
    default: "5s; 0 if all addresses are loopback",
  },
  drainTime: {
    flags: "--drain-time <time>",
    env: "SLUICE_DRAIN_TIME",
    says: "how long to wait after that for calls in flight, before they are cut off",
    otherwise: "20s",
  },
  logLevel: {
    flags: "--log-level <level>",
    env: "SLUICE_LOG_LEVEL",
    says: "least severe level to log: fatal, error, warn, info, debug, trace or silent",
    otherwise: "info",
  },
} as const satisfies Readonly<Record<string, Setting>>

/** The name of a setting: commander's name for its flag. */
export type SettingName = keyof typeof SETTINGS

const GROUPS: readonly (readonly [heading: string, first: SettingName])[] = [
  ["Addresses and TLS:", "grpc"],
  ["Rules:", "rules"],
  ["Counters:", "redisCluster"],
  ["Answers:", "unknownServices"],
  ["Bounds:", "maxMessageBytes"],
  ["Operation:", "plainCalls"],
]

const SECRETS = [REDIS_URL, MIRRORS, TOKENS, DECIDE_TOKENS]

const HELP_AFTER = `
Secrets are read from these variables, or from the files that they name:
${SECRETS.map(secretHelp).join("\n")}

Write times with a unit: 50ms, 5s, 2m. A flag overrides its variable. Without REDIS_URL, counters are in the memory of this
process. Without SLUICE_TOKENS, every caller may register rules if gRPC and HTTP are on loopback; otherwise no caller may.
SIGTERM and SIGINT drain the service; a second signal ends it at once. Exit codes: 0 drained, 1 failed, 2 invalid settings.

  $ sluice-service --rules rules.yaml
  $ REDIS_URL=redis://localhost:6379 sluice-service --table rules --grpc 0.0.0.0:50051`

/**
 * Creates the command line. `write` receives the help, and `complain` receives commander's message about an invalid
 * command line. In that case commander throws CommanderError.
 */
export function createCommand(
  version: string,
  write: (text: string) => void,
  complain: (text: string) => void,
): Command {
  const command = new Command("sluice-service")
    .description("Tells gateways, over gRPC and HTTP, whether to forward a request.")
    .version(version, "--version", "show the version")
    .helpOption("-h, --help", "show help")
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({ writeOut: write, writeErr: complain })
    .addHelpText("after", HELP_AFTER)
  let heading = ""
  for (const [name, setting] of Object.entries<Setting>(SETTINGS)) {
    heading = GROUPS.find(([, first]) => first === name)?.[0] ?? heading
    const { flags, env, says, otherwise, default: shown = otherwise } = setting
    const described = shown === undefined ? says : `${says} (default: ${shown})`
    command.addOption(new Option(flags, described).env(env).preset("true").helpGroup(heading))
  }
  return command
}

/** The text of a setting, given or by default, and the name to show for it. */
export interface GivenText {
  /** The name to show, first in the form that was used: "SLUICE_HTTP_ADDRESS (or --http)". */
  readonly name: string
  /** Undefined if the setting was not given and has no default. */
  readonly text: string | undefined
  /** Whether the setting was not given. */
  readonly isDefault: boolean
}

/** Returns the text of a setting from a parsed command line. */
export function givenText(command: Command, name: SettingName): GivenText {
  const { flags, env, otherwise }: Setting = SETTINGS[name]
  const [flag] = flags.split(" ") as [string]
  const isOfEnv = command.getOptionValueSource(name) === "env"
  const given = command.getOptionValue(name) as string | undefined
  // Treat an empty variable as not given, because a compose file cannot leave a variable out.
  const text = isOfEnv && given === "" ? undefined : given
  return {
    name: isOfEnv ? `${env} (or ${flag})` : `${flag} (or ${env})`,
    text: text ?? otherwise,
    isDefault: text === undefined,
  }
}

/** Returns the names of all variables that the program reads. */
export function knownVariables(): ReadonlySet<string> {
  const secrets = SECRETS.flatMap(({ variable, file }) => [variable, file])
  return new Set([...Object.values<Setting>(SETTINGS).map(({ env }) => env), ...secrets])
}

function secretHelp({ variable, file, says }: Secret<unknown>): string {
  return `  ${variable}, ${file}\n      ${says}`
}
