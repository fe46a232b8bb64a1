import { outsideRequests } from "../../../ground/time.ts"
import type { RedisCommands } from "../commands.ts"
import { FirstConnections } from "./first-connection.ts"
import { keySlot } from "./key-slot.ts"
import { callsOf, type NodeRedisCalls } from "./node-redis.ts"

/** How long to wait between two questions of who serves a slot, while its node is gone. */
const REFRESH_EVERY_MS = 500

/** The connection to a node of a cluster. */
interface NodeClient {
  readonly isReady: boolean
  on(event: "ready", listener: () => void): unknown
  off(event: "ready", listener: () => void): unknown
}

/** A node of a cluster; without a client until the first command for it when `minimizeConnections` is set. */
interface ClusterNode {
  readonly address: string
  readonly client?: NodeClient | undefined
}

/** A client of a cluster by node-redis. `slots` is sparse until it is connected. */
export interface NodeRedisClusterLike extends NodeRedisCalls {
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[]
  readonly masters: readonly ClusterNode[]
}

/** What the cluster has besides, not meant for apps, so it is used only where it is there. */
interface ClusterInside {
  readonly _keyPrefix?: unknown
  readonly _slots?: { rediscover?(startWith: NodeClient): Promise<unknown> }
}

/** The port on a cluster by node-redis. The app connects it, and listens to its errors. */
export function nodeRedisClusterCommands(client: NodeRedisClusterLike): RedisCommands {
  const inside = client as NodeRedisClusterLike & ClusterInside
  const { _keyPrefix: keyPrefix } = inside
  const prefix = keyPrefix === undefined ? "" : String(keyPrefix)
  const firstConnections = new FirstConnections()
  let refreshedAtMs = Number.NEGATIVE_INFINITY

  const primaryOf = (key: string): ClusterNode | undefined => client.slots[keySlot(prefix + key)]?.master

  // node-redis 5 learns of a failover from the next command only, which is none as long as the slot is not ready;
  // node-redis 6 by itself, but after five seconds.
  const refresh = (): void => {
    const nowMs = performance.now()
    if (nowMs - refreshedAtMs < REFRESH_EVERY_MS) return
    refreshedAtMs = nowMs
    const ready = client.masters.find((node) => node.client?.isReady)?.client
    // It tells the app of a failure by an event.
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
      if (primary.client === undefined) return true
      if (firstConnections.accepts(primary.client, primary.client.isReady)) return true
      refresh()
      return false
    },
    isOpen: () => client.isOpen,
    ...callsOf(client),
    onReady: (listener) => listenToNodes(client, listener),
    nodeOf: (key) => primaryOf(key)?.address ?? "",
    reconnect: () => undefined,
  }
}

/** Calls back when any node becomes ready. node-redis 5 says `node-ready` only the first time that a node is. */
function listenToNodes(client: NodeRedisClusterLike, listener: () => void): () => void {
  const onReady = (): void => listener()
  const heard = new Set<NodeClient>()
  const listen = (): boolean => {
    const present = new Set(
      client.masters.flatMap((node) => (node.client === undefined ? [] : [node.client])),
    )
    for (const node of heard) if (!present.has(node)) remove(node)
    let added = false
    for (const node of present) {
      if (heard.has(node)) continue
      heard.add(node)
      node.on("ready", onReady)
      added = true
    }
    return added
  }
  const remove = (node: NodeClient): void => {
    heard.delete(node)
    node.off("ready", onReady)
  }
  // A node that was heard already has said so itself.
  const onNodeReady = (): void => {
    if (listen()) listener()
  }
  listen()
  client.on("node-ready", onNodeReady)
  return () => {
    client.off("node-ready", onNodeReady)
    for (const node of heard) remove(node)
  }
}
