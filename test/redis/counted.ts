import type { RedisServer } from "../servers/redis-server.ts"

/** Layout of a packed value: previous and current count have 21 bits each. */
const COUNTS = 2n ** 21n

/** Units that a server holds under keys with this prefix, in the present and the previous window of each. */
export async function unitsIn(server: RedisServer, prefix: string): Promise<number> {
  const units = await unitsByKey(server, prefix)
  return [...units.values()].reduce((all, some) => all + some, 0)
}

/** The same, of each key. */
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

/** Keys with this prefix that have been counted more than once, where each is asked for once. */
export async function keysCountedTwice(server: RedisServer, prefix: string): Promise<string[]> {
  return [...(await unitsByKey(server, prefix))].filter(([, units]) => units > 1).map(([key]) => key)
}

/** Keys that would stay for ever. */
export async function keysWithoutTtl(server: RedisServer): Promise<string[]> {
  const keys = await keysOf(server, "")
  const ttls = await Promise.all(keys.map((key) => server.command("PTTL", key)))
  return keys.filter((_, nth) => ttls[nth] === -1)
}

async function keysOf(server: RedisServer, prefix: string): Promise<string[]> {
  return ((await server.command("KEYS", `${prefix}*`)) as string[]).sort()
}

/** The time of a server, in epoch milliseconds. */
export async function timeOf(server: RedisServer): Promise<number> {
  const [seconds, microseconds] = (await server.command("TIME")) as [string, string]
  return Math.floor(Number(seconds) * 1_000 + Number(microseconds) / 1_000)
}

/** Calls of each command that a server has run since it started or its statistics were reset, by the name of the command. */
export async function callsOf(server: RedisServer): Promise<Map<string, number>> {
  const calls = new Map<string, number>()
  for (const [, name = "", count] of String(await server.command("INFO", "commandstats")).matchAll(
    /cmdstat_(\S+?):calls=(\d+)/g,
  )) {
    calls.set(name, Number(count))
  }
  return calls
}

/** What was called between two looks, without the looks themselves. */
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
