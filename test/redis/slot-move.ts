import type { RedisCluster } from "../servers/redis-cluster.ts"
import type { RedisServer } from "../servers/redis-server.ts"

/** A slot that is between two nodes until the move is finished. */
export interface SlotMove {
  readonly to: RedisServer
  /** Moves one key; the others stay where they are. */
  move(key: string | undefined): Promise<void>
  /** Moves whatever is left, and tells all nodes who serves the slot now. */
  finish(): Promise<void>
}

/** Begins to move the slot of a key to another node, as `redis-cli --cluster reshard` does it. */
export async function startSlotMove(cluster: RedisCluster, key: string): Promise<SlotMove> {
  const from = await cluster.primaryOf(key)
  const to = cluster.nodes.find((node) => node !== from)
  if (to === undefined) throw new Error("there is no other node")
  const slot = String(await from.command("CLUSTER", "KEYSLOT", key))
  const fromId = String(await from.command("CLUSTER", "MYID"))
  const toId = String(await to.command("CLUSTER", "MYID"))
  const moveKeys = async (keys: readonly string[]): Promise<void> => {
    await from.command("MIGRATE", to.host, to.port, "", 0, 5_000, "KEYS", ...keys)
  }
  // Where both have claimed slots in one epoch, a late word of the old owner could win, and the new one drop its keys.
  await to.command("CLUSTER", "BUMPEPOCH")
  await to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", fromId)
  await from.command("CLUSTER", "SETSLOT", slot, "MIGRATING", toId)
  return {
    to,
    move: async (one) => moveKeys(one === undefined ? [] : [one]),
    async finish() {
      const left = (await from.command("CLUSTER", "GETKEYSINSLOT", slot, 1_000)) as string[]
      if (left.length > 0) await moveKeys(left)
      for (const node of [to, from, ...cluster.nodes]) {
        await node.command("CLUSTER", "SETSLOT", slot, "NODE", toId)
      }
    },
  }
}
