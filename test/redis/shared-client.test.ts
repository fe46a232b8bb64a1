import type { EventEmitter } from "node:events"
import { setImmediate as nextTurn } from "node:timers/promises"
import type { Cluster } from "ioredis"
import { afterAll, beforeAll, expect, it } from "vitest"
import { redisStore } from "../../packages/core/src/stores/redis/redis-store.ts"
import { type RedisCluster, startCluster } from "../servers/redis-cluster.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { type Library, type OpenedClient, openClient } from "./open-client.ts"

let server: RedisServer
let cluster: RedisCluster

beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster({ primaries: 3 })])
})
afterAll(() => Promise.all([server?.stop(), cluster?.stop()]))

/** Returns how many listeners the client and its nodes have for each event. */
function listenersOf({ client }: OpenedClient, library: Library, isCluster: boolean): number[] {
  const count = (emitter: object, ...events: readonly string[]): number =>
    events.reduce((sum, event) => sum + (emitter as EventEmitter).listenerCount(event), 0)
  if (!isCluster) return [count(client, "ready")]
  if (library.startsWith("node")) {
    const { masters } = client as { readonly masters: readonly { readonly client?: object }[] }
    return [count(client, "node-ready"), ...masters.map((node) => count(node.client ?? client, "ready"))]
  }
  const nodes = (client as unknown as Cluster).nodes("all")
  return [count(client, "ready", "+node", "-node"), ...nodes.map((node) => count(node, "ready"))]
}

it.each<[Library, boolean]>([
  ["ioredis 6", false],
  ["ioredis 5", false],
  ["node-redis 6", false],
  ["node-redis 5", false],
  ["ioredis 6", true],
  ["node-redis 6", true],
])(
  "a client of %s that many stores share gets each listener only once (cluster: %s)",
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
      const during = listenersOf(opened, library, isCluster)
      for (const [i, count] of during.entries()) expect(count).toBeGreaterThan(before[i] as number)
      expect(Math.max(...during.map((count, i) => count - (before[i] as number)))).toBeLessThan(4)
      for (const store of stores.slice(1)) store.close()
      // Closing the other stores changes nothing while one store is open.
      expect(listenersOf(opened, library, isCluster)).toEqual(during)
      stores[0]?.close()
      stores[0]?.close()
      expect(listenersOf(opened, library, isCluster)).toEqual(before)
      const again = redisStore({ client: opened.client })
      expect(listenersOf(opened, library, isCluster)).toEqual(during)
      again.close()
      await nextTurn()
      expect(warnings.map(({ name }) => name)).not.toContain("MaxListenersExceededWarning")
    } finally {
      process.off("warning", onWarning)
      opened.close()
    }
  },
)
