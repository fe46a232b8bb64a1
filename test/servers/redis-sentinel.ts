import { type RedisServer, startRedis } from "./redis-server.ts"
import { until } from "./until.ts"

/**
 * A primary and its replica, monitored by one Sentinel that decides alone (quorum 1) after 500 ms without a reply.
 */
export interface RedisSentinel {
  /** The server that started as primary, even if it is no longer the primary after a failover. */
  readonly primary: RedisServer
  readonly replica: RedisServer
  readonly sentinel: RedisServer
  /** Sentinel's name for the primary, for `SENTINEL GET-MASTER-ADDR-BY-NAME`. */
  readonly name: string
  /** Kills all three servers and removes their folders. */
  stop(): Promise<void>
}

const NAME = "sluice-primary"

/** Starts all three. Resolves once the Sentinel knows the replica and can promote it. */
export async function startSentinel(): Promise<RedisSentinel> {
  const servers: RedisServer[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()))
  }
  const start = async (options: Parameters<typeof startRedis>[0]): Promise<RedisServer> => {
    const server = await startRedis(options)
    servers.push(server)
    return server
  }
  try {
    const atOnce = ["--repl-diskless-sync-delay", "0"]
    const primary = await start({ args: atOnce })
    const replica = await start({ args: [...atOnce, "--replicaof", primary.host, `${primary.port}`] })
    // Sentinel requests a primary's replicas when Sentinel starts, and later only every 10 s.
    await until("the replica is in step", async () =>
      String(await primary.command("INFO", "replication")).includes(`port=${replica.port},state=online`),
    )
    const sentinel = await start({
      sentinel: [
        `sentinel monitor ${NAME} ${primary.host} ${primary.port} 1`,
        `sentinel down-after-milliseconds ${NAME} 500`,
        `sentinel failover-timeout ${NAME} 2000`,
        "",
      ].join("\n"),
    })
    await until("the Sentinel knows the replica", async () => {
      const replicas = await sentinel.command("SENTINEL", "REPLICAS", NAME)
      const fields = Array.isArray(replicas) ? fieldsOf(replicas[0]) : new Map<string, string>()
      return fields.get("port") === `${replica.port}` && fields.get("master-link-status") === "ok"
    })
    return { primary, replica, sentinel, name: NAME, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Returns the fields from Sentinel's list of alternating names and values. */
function fieldsOf(list: unknown): Map<string, string> {
  const fields = new Map<string, string>()
  if (!Array.isArray(list)) return fields
  for (let i = 0; i + 1 < list.length; i += 2) fields.set(String(list[i]), String(list[i + 1]))
  return fields
}
