import type { RedisServer } from "../servers/redis-server.ts"

/** The factor between the counts of a packed value. The previous and the current count have 21 bits each. */
const COUNTS = 2n ** 21n

/** Returns the sum of the units in all keys with this prefix on one server, in the current and the previous window. */
export async function unitsIn(server: RedisServer, prefix: string): Promise<number> {
  const units = await unitsByKey(server, prefix)
  return [...units.values()].reduce((all, some) => all + some, 0)
}

/** Returns the units of each key with this prefix, by key. */
export async function unitsByKey(server: RedisServer, prefix: string): Promise<Map<string, number>> {
  const keys = await keysOf(server, prefix)
  const values = await Promise.all(keys.map(async (key) => String(await server.command("GET", key))))
  return new Map(keys.map((key, nth) => [key, unitsOf(values[nth] as string)]))
}

function unitsOf(value: string): number {
  const wide = /^w:\d+:(\d+):(\d+)$/.exec(value)
  if (wide !== null) return Number(wide[1]) + Number(wide[2])
  return Number((BigInt(value) / COUNTS) % COUNTS) + Number(BigInt(value) % COUNTS)
}

/** Returns the keys with this prefix that were counted more than once, for tests that request each key only once. */
export async function keysCountedTwice(server: RedisServer, prefix: string): Promise<string[]> {
  return [...(await unitsByKey(server, prefix))].filter(([, units]) => units > 1).map(([key]) => key)
}

/** Returns the keys without a TTL. */
export async function keysWithoutTtl(server: RedisServer): Promise<string[]> {
  const keys = await keysOf(server, "")
  const ttls = await Promise.all(keys.map((key) => server.command("PTTL", key)))
  return keys.filter((_, nth) => ttls[nth] === -1)
}

async function keysOf(server: RedisServer, prefix: string): Promise<string[]> {
  return ((await server.command("KEYS", `${prefix}*`)) as string[]).sort()
}

/** Returns the server's time in epoch milliseconds. */
export async function timeOf(server: RedisServer): Promise<number> {
  const [seconds, microseconds] = (await server.command("TIME")) as [string, string]
  return Math.floor(Number(seconds) * 1_000 + Number(microseconds) / 1_000)
}

/** Returns how often a server has run each command since it started or its statistics were reset. */
export async function callsOf(server: RedisServer): Promise<Map<string, number>> {
  const calls = new Map<string, number>()
  for (const [, name = "", count] of String(await server.command("INFO", "commandstats")).matchAll(
    /cmdstat_(\S+?):calls=(\d+)/g,
  )) {
    calls.set(name, Number(count))
  }
  return calls
}

/** Returns the calls between two results of `callsOf`, without the calls that read the statistics. */
export function callsBetween(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): Record<string, number> {
  const between: Record<string, number> = {}
  for (const [name, count] of after) {
    const more = count - (before.get(name) ?? 0)
    if (more > 0 && name !== "info") between[name] = more
  }
  return between
}
