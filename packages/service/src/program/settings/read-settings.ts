import type { Command } from "commander"
import type { ListenAddress } from "../../sockets/listening.ts"
import { type Env, Reader } from "./reader.ts"
import { wrongMirrors, wrongRedis } from "./redis-urls.ts"
import { flagOf, ROWS, SETTINGS, type SettingName, type Settings } from "./settings-table.ts"

/** An error for invalid settings. Each problem is a line that names the setting and the accepted values. */
export class SettingsError extends Error {
  override readonly name = "SettingsError"
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join("\n"))
    this.problems = problems
  }
}

/** Reads the settings from a parsed command line. Throws SettingsError with all problems. */
export function readSettings(command: Command, env: Env): Settings {
  const reader = new Reader(command, env)
  // An invalid setting is undefined here, and the error is thrown below.
  const settings = Object.fromEntries(ROWS.map(([name]) => [name, reader.read(name)])) as unknown as Settings
  refuseContradictions(settings, reader)
  if (reader.problems.length > 0) throw new SettingsError(reader.problems)
  const { maxConnections, maxConnectionsPerPeer, drainPauseMs, grpc, http, operations } = settings
  return {
    ...settings,
    activity: settings.activity || settings.dashboard !== "off",
    maxConnectionsPerPeer: maxConnectionsPerPeer ?? Math.ceil(maxConnections / 4),
    drainPauseMs: drainPauseMs ?? (areLoopback(grpc, http, operations) ? 0 : 5_000),
  }
}

/** Whether all addresses are loopback addresses, which only this machine can reach. */
export function areLoopback(...addresses: readonly ListenAddress[]): boolean {
  return addresses.every(({ host }) => /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host))
}

/** Settings in `by` that have no effect without the setting `needed`. Messages call that setting `name`. */
const NEEDS = [
  {
    needed: "table",
    name: "a table",
    setting: "--table",
    by: ["region", "endpoint", "createTable", "pollMs"],
  },
  {
    needed: "redis",
    name: "REDIS_URL",
    setting: "REDIS_URL",
    by: ["redisPrefix", "redisCluster", "lease", "writeBackMs", "mirrors"],
  },
] as const

/**
 * Pairs of settings that exclude each other, and the accepted combination. The error message names the first setting.
 */
const EXCLUSIVE = [
  ["table", "rules", "either --rules or --table"],
  ["allowInvalidRules", "table", "only with --rules"],
  ["writeBackMs", "lease", "either --lease or --write-back"],
] as const

function refuseContradictions(settings: Settings, reader: Reader): void {
  /** Whether a setting is given, valid and not false. */
  const isOn = (name: SettingName): boolean =>
    reader.isGiven(name) && settings[name] !== undefined && settings[name] !== false
  for (const [name, other, accepted] of EXCLUSIVE) {
    const flag = flagOf(SETTINGS[other].flags as string)
    if (isOn(name) && isOn(other)) reader.refuse(name, `is given together with ${flag}`, accepted)
  }
  for (const { needed, name, setting, by } of NEEDS) {
    // Accept an invalid value of the needed setting, because that value is already reported.
    if (reader.isGiven(needed)) continue
    for (const each of by.filter(isOn)) {
      reader.refuse(each, `is given without ${name}`, `this setting together with ${setting}`)
    }
  }
  if (!reader.isGiven("table") && !reader.isGiven("rules")) {
    reader.missing("rules", "give a file with rules, or a table with --table")
  }
  if (["tlsCert", "tlsKey", "tlsClientCa"].some((name) => isOn(name as SettingName))) {
    for (const name of ["tlsCert", "tlsKey"] as const) {
      if (!reader.isGiven(name)) reader.missing(name, "TLS needs a certificate and its key")
    }
  }
  const { redis, redisCluster, maxUnfinishedBytes, maxMessageBytes, maxBatchBytes } = settings
  const leastUnfinished = 8 * Math.max(maxMessageBytes, maxBatchBytes)
  if (maxUnfinishedBytes < leastUnfinished) {
    // The factor is 8, because a connection may use a quarter of these bytes, and a message that arrives in pieces
    // may take twice its length.
    const accepted = `at least ${leastUnfinished} (8 times the longest message)`
    reader.refuse("maxUnfinishedBytes", "is too small", accepted)
  }
  if (redis === undefined) return
  const problem = wrongRedis(redis, redisCluster)
  if (problem !== undefined) reader.refuse("redis", ...problem)
  for (const each of wrongMirrors(settings)) reader.refuse("mirrors", ...each)
}

/**
 * Variables that Kubernetes sets for a Service with the name sluice or sluice-…: SLUICE_HTTP_SERVICE_HOST,
 * SLUICE_PORT_80_TCP.
 */
const OF_KUBERNETES = /_(?:SERVICE_(?:HOST|PORT)|PORT)(?:_|$)/

/**
 * Returns environment variables that look like settings but are not, most likely because their names are misspelled.
 */
export function unknownVariables(env: Env): string[] {
  const known = new Set(
    ROWS.flatMap(([, { flags, variable }]) =>
      flags === undefined ? [variable, `${variable}_FILE`] : [variable],
    ),
  )
  return Object.keys(env).filter(
    (name) => name.startsWith("SLUICE_") && !known.has(name) && !OF_KUBERNETES.test(name),
  )
}
