import { outsideRequests } from "@sluice/core/kit"
import type { RedisCommands } from "../commands.ts"
import { callsOf, connect, type IoredisClusterLike, type IoredisLike, prefixOf } from "./ioredis.ts"
import { keySlot } from "./key-slot.ts"

/** Shortest time between two refreshes of the slots while a node is unavailable. */
const REFRESH_EVERY_MS = 200

/**
 * Returns the commands of an ioredis cluster client. Adds no error listener, because the app handles the client's
 * errors.
 */
export function ioredisClusterCommands(client: IoredisClusterLike): RedisCommands {
  const prefix = prefixOf(client)
  const nodes = new Map<string, IoredisLike>()
  let refreshedAtMs = Number.NEGATIVE_INFINITY

  const nodeOf = (key: string): string => client.slots[keySlot(prefix + key)]?.[0] ?? ""

  // Cache the nodes, because `nodes()` creates an array, which is too expensive for every call.
  const nodeNamed = (name: string): IoredisLike | undefined => {
    const known = nodes.get(name)
    if (known !== undefined && known.status !== "end") return known
    nodes.clear()
    for (const node of client.nodes("master")) nodes.set(`${node.options.host}:${node.options.port}`, node)
    return nodes.get(name)
  }

  // ioredis removes a node whose connection has ended. A command for one of that node's slots would make ioredis look
  // for the new node. But the store sends no command while the slot is not ready, so refresh the slots here.
  const refresh = (): void => {
    const nowMs = performance.now()
    if (nowMs - refreshedAtMs < REFRESH_EVERY_MS) return
    refreshedAtMs = nowMs
    outsideRequests(() => client.refreshSlotsCache(() => undefined))
  }

  for (const node of client.nodes("all")) hearAsking(node)
  client.on("+node", hearAsking)
  return {
    isCluster: true,
    isReady(key) {
      if (client.status !== "ready") {
        if (client.status === "wait") connect(client)
        return false
      }
      const node = nodeNamed(nodeOf(key))
      if (node?.status === "ready") return true
      // ioredis connects to a node only when it must send a command there.
      if (node?.status !== "wait") refresh()
      // Do not connect a node that ioredis has removed: it would reconnect forever, and nothing would handle its
      // errors.
      else if (client.nodes("all").includes(node)) connect(node)
      else nodes.clear()
      return false
    },
    isOpen: () => client.status !== "end",
    ...callsOf(client),
    nodeOf,
    reconnect: refresh,
  }
}

/**
 * Handles rejections of ASKING. To follow ASK, ioredis sends ASKING before the call, but handles only the promise of
 * the call. If ASKING failed, the unhandled rejection would end the process. Other callers of `asking` still receive
 * the rejection.
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
