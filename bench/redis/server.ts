import { type RedisServer, startRedis } from "../../test/servers/redis-server.ts"

export type { RedisServer } from "../../test/servers/redis-server.ts"

/** Starts a Redis for the benchmark. If Redis is not installed, prints how to install it and ends the process. */
export async function startServer(): Promise<RedisServer> {
  try {
    return await startRedis()
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exit(2)
  }
}

/** The amount of work that the server has done since its start. */
export interface Usage {
  /** CPU time of the thread that runs commands, in microseconds. */
  readonly cpuUs: number
  /** Number of calls by the name of the command, including calls from scripts. */
  readonly calls: ReadonlyMap<string, number>
}

export async function usageOf(server: RedisServer): Promise<Usage> {
  const cpu = await infoOf(server, "cpu")
  const seconds = number(cpu, "used_cpu_user_main_thread") + number(cpu, "used_cpu_sys_main_thread")
  const stats = await infoOf(server, "commandstats")
  const calls = new Map<string, number>()
  for (const [name, text] of stats) {
    // Skip the commands of the benchmark itself.
    if (name === "cmdstat_info" || name === "cmdstat_flushall" || name === "cmdstat_memory|usage") continue
    calls.set(name.slice("cmdstat_".length), Number(/calls=(\d+)/.exec(text)?.[1]))
  }
  return { cpuUs: seconds * 1e6, calls }
}

/** Returns the number of calls between two usages, for the given commands or for all commands. */
export function callsSince(before: Usage, after: Usage, names?: readonly string[]): number {
  let sum = 0
  for (const [name, calls] of after.calls) {
    if (names === undefined || names.includes(name)) sum += calls - (before.calls.get(name) ?? 0)
  }
  return sum
}

export async function usedMemory(server: RedisServer): Promise<number> {
  return number(await infoOf(server, "memory"), "used_memory")
}

export async function versionOf(server: RedisServer): Promise<string> {
  return (await infoOf(server, "server")).get("redis_version") ?? "unknown"
}

async function infoOf(server: RedisServer, section: string): Promise<Map<string, string>> {
  const text = String(await server.command("INFO", section))
  return new Map(
    text.split("\r\n").flatMap((line): [string, string][] => {
      const colon = line.indexOf(":")
      return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]]
    }),
  )
}

function number(info: ReadonlyMap<string, string>, name: string): number {
  const value = Number(info.get(name))
  if (!Number.isFinite(value)) throw new Error(`INFO has no ${name}; use Redis 7.0 or later`)
  return value
}
