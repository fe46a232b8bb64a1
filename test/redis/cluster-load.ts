import { createLimiter, type Decision, type Limiter, type Store } from "@sluice/core"
import type { RedisCluster } from "../servers/redis-cluster.ts"
import type { RedisServer } from "../servers/redis-server.ts"
import { keysWithoutTtl, unitsIn } from "./counted.ts"

/**
 * A record of decisions. Decisions without Redis are counted as degraded, but their admitted units are not counted
 * here.
 */
export interface Ledger {
  readonly admitted: Map<string, number>
  degraded: number
  /** Errors that decisions threw. This array must be empty. */
  readonly thrown: unknown[]
  decisions: number
}

export interface Load {
  readonly ledger: Ledger
  /** Stops the load and waits for the last replies. */
  stop(): Promise<void>
}

const PAUSE_MS = 2

export function limiterOn(store: Store, limit: number, storeTimeoutMs: number): Limiter<{ user: string }> {
  return createLimiter<{ user: string }>({
    store,
    service: "shop",
    limit,
    window: "30 days",
    fields: { user: ({ user }) => user },
    field: "user",
    storeTimeoutMs,
    logger: { warn() {}, error() {} },
  })
}

/**
 * Calls each limiter for each user repeatedly, with a pause after each round. Includes users that are added to the
 * array later.
 */
export function loadOn(limiters: readonly Limiter<{ user: string }>[], users: readonly string[]): Load {
  const ledger: Ledger = { admitted: new Map(), degraded: 0, thrown: [], decisions: 0 }
  let isStopped = false
  const note = (user: string, { allowed, degraded, cost }: Decision): void => {
    ledger.decisions++
    if (degraded) ledger.degraded++
    else if (allowed) ledger.admitted.set(user, (ledger.admitted.get(user) ?? 0) + cost)
  }
  const drive = async (limiter: Limiter<{ user: string }>): Promise<void> => {
    while (!isStopped) {
      await Promise.all(
        users.map((user) =>
          limiter.decide({ user }).then(
            (decision) => note(user, decision),
            (error: unknown) => ledger.thrown.push(error),
          ),
        ),
      )
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
  const drives = limiters.map(drive)
  return {
    ledger,
    async stop() {
      isStopped = true
      await Promise.all(drives)
    },
  }
}

export function admittedIn({ admitted }: Ledger): number {
  return [...admitted.values()].reduce((all, some) => all + some, 0)
}

/** Returns the nodes that currently serve slots. */
export async function primariesOf(cluster: RedisCluster): Promise<RedisServer[]> {
  const running = cluster.nodes.filter((node) => node.running)
  const infos = await Promise.all(running.map((node) => node.command("INFO", "replication")))
  return running.filter((_, i) => String(infos[i]).includes("role:master"))
}

export async function unitsInCluster(cluster: RedisCluster, prefix: string): Promise<number> {
  const units = await Promise.all((await primariesOf(cluster)).map((node) => unitsIn(node, prefix)))
  return units.reduce((all, some) => all + some, 0)
}

export async function lastingKeysIn(cluster: RedisCluster): Promise<string[]> {
  return (await Promise.all((await primariesOf(cluster)).map(keysWithoutTtl))).flat()
}
