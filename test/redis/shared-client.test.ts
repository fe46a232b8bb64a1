import type { EventEmitter } from "node:events"
import { setImmediate as nextTurn } from "node:timers/promises"
import type { Cluster } from "ioredis"
import { afterAll, beforeAll, expect, it } from "vitest"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { type RedisCluster, startCluster } from "../servers/redis-cluster.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { type Library, type OpenedClient, openClient } from "./open-client.ts"

let server: RedisServer
let cluster: RedisCluster

beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster({ primaries: 3 })])
})
afterAll(() => Promise.all([server?.stop(), cluster?.stop()]))

const EVENTS = ["ready", "node-ready", "+node", "-node"]

/** Returns how many listeners for these events the client and its nodes have. */
function listenersOf({ client }: OpenedClient, library: Library, isCluster: boolean): number[] {
  const count = (emitter: object): number =>
    EVENTS.reduce((sum, event) => sum + (emitter as EventEmitter).listenerCount(event), 0)
  if (!isCluster) return [count(client)]
  if (library.startsWith("node")) {
    const { masters } = client as { readonly masters: readonly { readonly client?: object }[] }
    return [count(client), ...masters.map((node) => count(node.client ?? client))]
  }
  const nodes = (client as unknown as Cluster).nodes("all")
  return [count(client), ...nodes.map(count)]
}

it.each<[Library, boolean]>([
  ["ioredis 6", false],
  ["ioredis 5", false],
  ["node-redis 6", false],
  ["node-redis 5", false],
  ["ioredis 6", true],
  ["node-redis 6", true],
])(
  "many stores that share a client of %s add at most one listener to it (cluster: %s)",
  async (library, isCluster) => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => void warnings.push(warning)
    process.on("warning", onWarning)
    const ports = isCluster ? cluster.nodes.map(({ port }) => port) : [server.port]
    const opened = await openClient({ library, ports, isCluster })
    try {
      const before = listenersOf(opened, library, isCluster)
      const stores = Array.from({ length: 20 }, (_, i) =>
        redisStore({ client: opened.client, prefix: `${i}:` }),
      )
      const added = listenersOf(opened, library, isCluster).map((count, i) => count - (before[i] as number))
      // Only a cluster client of ioredis gets a listener, for nodes that are added later.
      const own = isCluster && library.startsWith("ioredis") ? 1 : 0
      expect(added).toEqual(before.map((_, i) => (i === 0 ? own : 0)))
      for (const store of stores) store.close()
      await nextTurn()
      expect(warnings.map(({ name }) => name)).not.toContain("MaxListenersExceededWarning")
    } finally {
      process.off("warning", onWarning)
      opened.close()
    }
  },
)
