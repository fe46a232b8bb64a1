import type { RedisStoreOptions } from "../../packages/redis/src/options.ts"
import { everyNth } from "../test-length.ts"

/** The clients that the store supports, by library, and by major version if several are supported. */
export const LIBRARIES = [
  "ioredis 6",
  "node-redis 6",
  "node-redis 5",
  "ioredis 5",
  "Valkey GLIDE",
  "iovalkey",
] as const
export type Library = (typeof LIBRARIES)[number]

/**
 * Returns one client per library, one of which has the older version. In `pnpm test:long`, returns all clients. The
 * tests of a file alternate between 0 and 1, so that together they use every client.
 */
export function librariesInTurn(turn: 0 | 1): readonly Library[] {
  return everyNth(2, LIBRARIES, turn)
}

/** The client to open and its servers. The client is plain data, so that it can be sent to another process. */
export interface ClientChoice {
  readonly library: Library
  /** Ports on 127.0.0.1, of one server or of some nodes of a cluster. */
  readonly ports: readonly number[]
  readonly isCluster: boolean
}

export interface OpenedClient {
  readonly client: RedisStoreOptions["client"]
  close(): void
}

const host = "127.0.0.1"

/**
 * Resolves with a connected client. Ignores the client's errors, because the tests check their effect on decisions.
 * Loads only the chosen library, because loading a library delays the start of a process.
 */
export async function openClient({ library, ports, isCluster }: ClientChoice): Promise<OpenedClient> {
  const [port = 0] = ports
  const nodes = ports.map((each) => ({ host, port: each }))
  const rootNodes = nodes.map((socket) => ({ socket }))
  switch (library) {
    case "ioredis 6": {
      const { Cluster, Redis } = await import("ioredis")
      return connected(isCluster ? new Cluster(nodes, LAZY) : new Redis(port, host, LAZY))
    }
    case "ioredis 5": {
      const { Cluster, Redis } = await import("ioredis5")
      return connected(isCluster ? new Cluster(nodes, LAZY) : new Redis(port, host, LAZY))
    }
    case "node-redis 6": {
      const { createClient, createCluster } = await import("redis")
      return connected(isCluster ? createCluster({ rootNodes }) : createClient({ socket: { host, port } }))
    }
    case "node-redis 5": {
      const { createClient, createCluster } = await import("redis5")
      return connected(isCluster ? createCluster({ rootNodes }) : createClient({ socket: { host, port } }))
    }
    case "iovalkey": {
      const { Cluster, Redis } = await import("iovalkey")
      return connected(isCluster ? new Cluster(nodes, LAZY) : new Redis(port, host, LAZY))
    }
    case "Valkey GLIDE": {
      const { GlideClient, GlideClusterClient, Logger } = await import("@valkey/valkey-glide")
      Logger.setLoggerConfig("off")
      // As long as the timeout of tests that wait for Redis.
      const requestTimeout = 20_000
      const client = await (isCluster
        ? GlideClusterClient.createClient({ addresses: nodes, requestTimeout })
        : GlideClient.createClient({ addresses: nodes, requestTimeout }))
      return { client, close: () => client.close() }
    }
  }
}

const LAZY = { lazyConnect: true }

type AnyClient = RedisStoreOptions["client"] & {
  on(event: "error", listener: () => void): unknown
  connect(): Promise<unknown>
} & ({ disconnect(): void } | { destroy(): void })

async function connected(client: AnyClient): Promise<OpenedClient> {
  client.on("error", () => {})
  await client.connect()
  return { client, close: () => ("destroy" in client ? client.destroy() : client.disconnect()) }
}
