import { setTimeout as sleep } from "node:timers/promises"
import type { RedisBinary } from "../../test/servers/redis-binary.ts"
import { type RedisServer, startRedis } from "../../test/servers/redis-server.ts"
import { LIMIT, openMonth, sendSteadily } from "./month.ts"

/** How a Redis keeps its counters, and what happens after its process is killed. */
export interface Setting {
  readonly name: string
  readonly args: readonly string[]
  /**
   * Without this member, the killed server restarts. "promoted": its replica replaces it. "copies": the killed
   * server restarts first, and its replica copies it.
   */
  readonly replica?: "promoted" | "copies"
  /** Redis' own save points take a snapshot once a minute, so the kill must come later than in the other settings. */
  readonly isSlow?: boolean
}

export const EVERYSEC: readonly string[] = ["--appendonly", "yes", "--appendfsync", "everysec"]
export const ALWAYS: readonly string[] = ["--appendonly", "yes", "--appendfsync", "always"]
const SAVE_POINTS = ["--save", "3600", "1", "300", "100", "60", "10000"]

export const SETTINGS: readonly Setting[] = [
  { name: "no persistence", args: [] },
  { name: "snapshots, Redis' own save points", args: SAVE_POINTS, isSlow: true },
  { name: "AOF, everysec", args: EVERYSEC },
  { name: "AOF, always", args: ALWAYS },
  { name: "a replica, promoted", args: [], replica: "promoted" },
  { name: "a replica, after an empty restart", args: [], replica: "copies" },
]

export interface Loss {
  readonly admitted: number
  /** The admitted units that no counter contains after the kill. */
  readonly lost: number
  /** The part of `lost` that belongs to the client that sends every other request. */
  readonly lostByOne: number
}

const CLIENTS = 1_000
const ONE = "one"

/** Counts the units that are lost when the Redis process is killed after `killMs` of steady traffic. */
export async function lossOf(
  { args, replica }: Setting,
  { perSecond, killMs }: { readonly perSecond: number; readonly killMs: number },
  binary?: RedisBinary,
): Promise<Loss> {
  const options = binary === undefined ? {} : { binary }
  const primary = await startRedis({ ...options, args: [...args, "--repl-diskless-sync-delay", "0"] })
  const replicaOf = ["--replicaof", primary.host, `${primary.port}`]
  const second = replica && (await startRedis({ ...options, args: replicaOf }))
  try {
    if (second) await hasReplica(primary)
    const admitted = await admittedUntilKill(primary, perSecond, killMs)
    if (replica !== "promoted") await primary.start()
    if (second) {
      if (replica === "copies") await hasReplica(primary)
      await second.command("REPLICAOF", "NO", "ONE")
    }
    return await missing(admitted, second || primary)
  } finally {
    await primary.stop()
    if (second) await second.stop()
  }
}

/**
 * Waits until the replica confirms a write. Its own `master_link_status` is "up" up to a second before the primary
 * sends it anything.
 */
async function hasReplica(primary: RedisServer): Promise<void> {
  await primary.command("SET", "written", "1")
  await primary.command("WAIT", 1, 0)
}

/** Returns the admitted units of each client. Kills the server under load. */
async function admittedUntilKill(server: RedisServer, perSecond: number, killMs: number) {
  const admitted = new Map<string, number>()
  const { limiter, close } = await openMonth(server.port)
  const stop = new AbortController()
  const sent = sendSteadily(perSecond, stop.signal, async (nth) => {
    const account = nth % 2 === 0 ? ONE : `${nth % CLIENTS}`
    const { allowed } = await limiter.decide({ account })
    if (allowed) admitted.set(account, (admitted.get(account) ?? 0) + 1)
  })
  await sleep(killMs)
  await server.kill()
  stop.abort()
  await sent
  await close()
  return admitted
}

async function missing(admitted: ReadonlyMap<string, number>, server: RedisServer): Promise<Loss> {
  const { limiter, close } = await openMonth(server.port)
  const loss = { admitted: 0, lost: 0, lostByOne: 0 }
  for (const [account, units] of admitted) {
    const { remaining, degraded } = await limiter.peek({ account })
    if (degraded) throw new Error("Redis did not answer after its restart.")
    // Redis may also have counted requests whose reply was lost.
    const lost = Math.max(0, units - (LIMIT - remaining))
    loss.admitted += units
    loss.lost += lost
    if (account === ONE) loss.lostByOne = lost
  }
  await close()
  return loss
}
