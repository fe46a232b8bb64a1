import { NotAccepted } from "./not-accepted.ts"
import type { Reader } from "./reader.ts"
import { MIRRORS, REDIS_URL } from "./secrets.ts"
import type { RedisSettings } from "./settings.ts"
import { duration, matching, type Read, yesOrNo } from "./values.ts"

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

/** Reads where counters are, and how they are counted there. Undefined if they are in the memory of this process. */
export function readRedis(reader: Reader): RedisSettings | undefined {
  const urls = reader.secret(REDIS_URL)
  const mirrors = reader.secret(MIRRORS)
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
