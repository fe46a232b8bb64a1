import { outsideRequests } from "@sluice/core/kit"
import type { RedisCommands } from "../commands.ts"
import { keySlot } from "./key-slot.ts"
import { callsOf, type NodeRedisCalls } from "./node-redis.ts"

/** Shortest time between two refreshes of the slots while a node is unavailable. */
const REFRESH_EVERY_MS = 500

/** The connection to a node of a cluster. */
interface NodeClient {
  readonly isReady: boolean
}

/** A node of a cluster. With `minimizeConnections`, node-redis creates the node's client for the first command. */
interface ClusterNode {
  readonly address: string
  readonly client?: NodeClient | undefined
}

/** A node-redis client of a cluster. Until the client is connected, `slots` is a sparse array. */
export interface NodeRedisClusterLike extends NodeRedisCalls {
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[]
  readonly masters: readonly ClusterNode[]
}

/** Internal members of the cluster client. They are not a public API, so any of them may be missing. */
interface ClusterInside {
  readonly _keyPrefix?: unknown
  readonly _slots?: { rediscover?(startWith: NodeClient): Promise<unknown> }
}

/** Returns the commands of a node-redis cluster client. The app must connect the client and handle its errors. */
export function nodeRedisClusterCommands(client: NodeRedisClusterLike): RedisCommands {
  const inside = client as NodeRedisClusterLike & ClusterInside
  const { _keyPrefix: keyPrefix } = inside
  const prefix = keyPrefix === undefined ? "" : String(keyPrefix)
  let refreshedAtMs = Number.NEGATIVE_INFINITY

  const primaryOf = (key: string): ClusterNode | undefined => client.slots[keySlot(prefix + key)]?.master

  // node-redis 5 detects a failover only with the next command, but the store sends no command while the slot is not
  // ready. node-redis 6 needs five seconds, even without a command.
  const refresh = (): void => {
    const nowMs = performance.now()
    if (nowMs - refreshedAtMs < REFRESH_EVERY_MS) return
    refreshedAtMs = nowMs
    const ready = client.masters.find((node) => node.client?.isReady)?.client
    // Ignore the rejection, because node-redis reports the failure to the app by an event.
    if (ready !== undefined) {
      outsideRequests(() => inside._slots?.rediscover?.(ready))?.catch(() => undefined)
    }
  }

  return {
    isCluster: true,
    isReady(key) {
      if (!client.isOpen) return false
      const primary = primaryOf(key)
      if (primary === undefined) return false
      // A node without a client counts as ready, because the first command makes node-redis connect to the node.
      if (primary.client === undefined || primary.client.isReady) return true
      refresh()
      return false
    },
    isOpen: () => client.isOpen,
    ...callsOf(client),
    nodeOf: (key) => primaryOf(key)?.address ?? "",
    reconnect: refresh,
  }
}
