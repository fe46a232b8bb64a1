import type { RedisServer } from "../servers/redis-server.ts"

/** Layout of a packed value: previous and current count have 21 bits each. */
const COUNTS = 2n ** 21n

/** Units that a server holds under keys with this prefix, in the present and the previous window of each. */
export async function unitsIn(server: RedisServer, prefix: string): Promise<number> {
  let units = 0
  for (const key of await keysOf(server, prefix)) {
    const value = String(await server.command("GET", key))
    const wide = /^w:\d+:(\d+):(\d+)$/.exec(value)
    if (wide !== null) units += Number(wide[1]) + Number(wide[2])
    else units += Number((BigInt(value) / COUNTS) % COUNTS) + Number(BigInt(value) % COUNTS)
  }
  return units
}

/** Keys that would stay for ever. */
export async function keysWithoutTtl(server: RedisServer): Promise<string[]> {
  const lasting: string[] = []
  for (const key of await keysOf(server, "")) {
    if (Number(await server.command("PTTL", key)) === -1) lasting.push(key)
  }
  return lasting
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
