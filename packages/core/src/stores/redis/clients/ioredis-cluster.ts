import { outsideRequests } from "../../../ground/time.ts"
import type { RedisCommands } from "../commands.ts"
import { FirstConnections } from "./first-connection.ts"
import { callsOf, connect, type IoredisClusterLike, type IoredisLike, prefixOf } from "./ioredis.ts"
import { keySlot } from "./key-slot.ts"

/** How long to wait between two questions of who serves a slot, while its node is gone. */
const REFRESH_EVERY_MS = 200

/** The port on a cluster by ioredis. Adds no listener for errors: those of the client are the app's. */
export function ioredisClusterCommands(client: IoredisClusterLike): RedisCommands {
  const prefix = prefixOf(client)
  const firstConnections = new FirstConnections()
  const nodes = new Map<string, IoredisLike>()
  let refreshedAtMs = Number.NEGATIVE_INFINITY

  const nodeOf = (key: string): string => client.slots[keySlot(prefix + key)]?.[0] ?? ""

  // `nodes()` makes a list, which is too dear for every call.
  const nodeNamed = (name: string): IoredisLike | undefined => {
    const known = nodes.get(name)
    if (known !== undefined && known.status !== "end") return known
    nodes.clear()
    for (const node of client.nodes("master")) nodes.set(`${node.options.host}:${node.options.port}`, node)
    return nodes.get(name)
  }

  const accepts = (node: IoredisLike): boolean => {
    switch (node.status) {
      case "ready":
        return firstConnections.accepts(node, true)
      case "wait":
        // The first command would do so; but the caller may have other reasons to send none.
        connect(node)
        return firstConnections.accepts(node, false)
      case "connecting":
      case "connect":
        return firstConnections.accepts(node, false)
      default:
        return false
    }
  }

  // ioredis drops a node whose connection ended and learns who serves its slots from the next command that it sends
  // for them, which is none as long as the slot is not ready.
  const refresh = (): void => {
    const nowMs = performance.now()
    if (nowMs - refreshedAtMs < REFRESH_EVERY_MS) return
    refreshedAtMs = nowMs
    outsideRequests(() => client.refreshSlotsCache(() => undefined))
  }

  return {
    isCluster: true,
    isReady(key) {
      if (client.status !== "ready") {
        if (client.status === "wait") connect(client)
        return false
      }
      const node = nodeNamed(nodeOf(key))
      if (node !== undefined && accepts(node)) return true
      refresh()
      return false
    },
    isOpen: () => client.status !== "end",
    ...callsOf(client),
    onReady: (listener) => listenToNodes(client, listener),
    nodeOf,
    reconnect: () => undefined,
  }
}

/** Calls back when the cluster and when any of its nodes becomes ready. */
function listenToNodes(client: IoredisClusterLike, listener: () => void): () => void {
  const onReady = (): void => listener()
  const heard = new Set<IoredisLike>()
  const add = (node: IoredisLike): void => {
    if (heard.has(node)) return
    heard.add(node)
    node.on("ready", onReady)
    hearAsking(node)
  }
  const remove = (node: IoredisLike): void => {
    heard.delete(node)
    node.off("ready", onReady)
  }
  for (const node of client.nodes("all")) add(node)
  client.on("ready", onReady)
  client.on("+node", add)
  client.on("-node", remove)
  return () => {
    client.off("ready", onReady)
    client.off("+node", add)
    client.off("-node", remove)
    for (const node of heard) remove(node)
  }
}

/**
 * To follow ASK, ioredis sends ASKING before the call and looks at what becomes of the call alone. When the node says no, or
 * dies before it has answered, the promise of ASKING is rejected with nobody to hear of it, which would end the process. So
 * somebody hears; whoever else asks is told as before.
 */
function hearAsking(node: IoredisLike & { asking?(...args: unknown[]): unknown }): void {
  const { asking } = node
  if (typeof asking !== "function" || Object.hasOwn(node, "asking")) return
  node.asking = (...args) => {
    const asked = asking.apply(node, args)
    Promise.resolve(asked).catch(() => undefined)
    return asked
  }
}
