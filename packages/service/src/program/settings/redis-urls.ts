import type { Settings } from "./settings-table.ts"

type UrlProblem = readonly [is: string, accepted: string]

/** Returns the first problem with the URLs of Redis. */
export function wrongRedis(urls: readonly string[], isCluster: boolean): UrlProblem | undefined {
  return isCluster ? wrongNodes(urls) : wrongServer(urls)
}

/** Returns the first problem of each data center. Each result completes an error message about SLUICE_MIRRORS. */
export function wrongMirrors({
  redis = [],
  mirrors = {},
  redisCluster,
}: Pick<Settings, "redis" | "mirrors" | "redisCluster">): UrlProblem[] {
  const earlier = [...redis]
  return Object.entries(mirrors).flatMap(([name, urls]): UrlProblem[] => {
    const problem = wrongRedis(urls, redisCluster) ?? twiceNamed(urls, earlier)
    earlier.push(...urls)
    return problem === undefined ? [] : [[`of ${JSON.stringify(name)} ${problem[0]}`, problem[1]]]
  })
}

/** Returns a problem if two data centers use the same Redis, because all units would be counted twice. */
function twiceNamed(some: readonly string[], others: readonly string[]): UrlProblem | undefined {
  const places = new Set(others.map(placeOf))
  if (!some.some((url) => places.has(placeOf(url)))) return undefined
  return ["is the Redis of REDIS_URL or of another data center", "a different Redis for each data center"]
}

function placeOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url)
  const database = searchParams.get("db") ?? pathname.slice(1)
  return `${hostname.toLowerCase()}:${port === "" ? "6379" : port}/${Number(database)}`
}

function wrongServer(urls: readonly string[]): UrlProblem | undefined {
  if (urls.length > 1) return ["names several servers", "one server, or several with --redis-cluster"]
  const { pathname, searchParams } = new URL(urls[0] as string)
  // Accept only digits. Otherwise, ioredis would select the wrong database, or throw an uncatchable error after it
  // has connected.
  const databases = [pathname.slice(1), searchParams.get("db") ?? ""]
  if (databases.every((each) => /^\d*$/.test(each))) return undefined
  return ["names a database that is not a number", "redis://user:password@host:6379/0"]
}

/**
 * Returns the first problem with the nodes of a cluster. ioredis would silently ignore the affected parts of the
 * URLs, which is hard to diagnose during an outage.
 */
function wrongNodes(urls: readonly string[]): UrlProblem | undefined {
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
