import type { RedisCluster } from "../servers/redis-cluster.ts"
import type { RedisServer } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"

/** A slot that is moving between two nodes. */
export interface SlotMove {
  readonly to: RedisServer
  /** Moves one key. The other keys stay on the old node. */
  move(key: string | undefined): Promise<void>
  /** Moves the remaining keys, and informs all nodes of the slot's new node. */
  finish(): Promise<void>
}

/** Starts to move the slot of a key to another node, as `redis-cli --cluster reshard` does. */
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
  await leadAlone(to, cluster)
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

/**
 * Gives a node a higher config epoch than every other primary, and waits until all nodes know this epoch. Otherwise a
 * late message could return the slot to the old owner. For example, two nodes could claim slots in the same epoch, or
 * the old owner could get a new epoch during the move. Then each node would redirect clients to the other node
 * forever.
 */
async function leadAlone(leader: RedisServer, { nodes }: RedisCluster): Promise<void> {
  const others = nodes.filter((node) => node !== leader)
  await until("one epoch is above all others", async () => {
    await leader.command("CLUSTER", "BUMPEPOCH")
    const { my } = await epochsOf(leader)
    const theirs = await Promise.all(others.map(epochsOf))
    return theirs.every((one) => one.my < my && one.current >= my)
  })
}

async function epochsOf(node: RedisServer): Promise<{ readonly my: number; readonly current: number }> {
  const info = String(await node.command("CLUSTER", "INFO"))
  const epoch = (of: string) => Number(new RegExp(`^cluster_${of}_epoch:(\\d+)`, "m").exec(info)?.[1])
  return { my: epoch("my"), current: epoch("current") }
}
