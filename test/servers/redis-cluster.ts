import { agree, type ClusterMember, lines, whoServes } from "./cluster-view.ts"
import { type RedisServer, startRedis } from "./redis-server.ts"
import { moveSlots } from "./slot-migration.ts"
import { until } from "./until.ts"

export interface ClusterOptions {
  /** Number of nodes that serve slots. At least 3, because fewer nodes cannot agree on a failover. */
  readonly primaries: number
  /** Number of replicas of each primary. Default 0. */
  readonly replicas?: 0 | 1
}

const SLOTS = 16_384
const ARGS = [
  ...["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"],
  // A node that does not respond for 1 s is failed over.
  ...["--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"],
]

/**
 * Starts a cluster. Resolves once every node knows all other nodes and serves requests, and all replicas are in sync.
 * This takes about 2 to 4 s.
 */
export async function startCluster(options: ClusterOptions): Promise<RedisCluster> {
  const { primaries, replicas = 0 } = options
  const started = await Promise.allSettled(
    Array.from({ length: primaries * (1 + replicas) }, () => startRedis({ args: ARGS })),
  )
  const cluster = new RedisCluster(
    started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])),
  )
  try {
    for (const result of started) if (result.status === "rejected") throw result.reason
    await form(cluster.nodes, primaries)
    await cluster.settled()
    return cluster
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

/**
 * A running cluster, created by `startCluster`. If i < primaries, node i starts as a primary, and node i + primaries
 * starts as its replica.
 */
export class RedisCluster {
  #nodes: readonly RedisServer[]

  constructor(nodes: readonly RedisServer[]) {
    this.#nodes = nodes
  }

  /** Returns the nodes of the cluster, including killed ones. */
  get nodes(): readonly RedisServer[] {
    return this.#nodes
  }

  /** Returns the node that serves a key now, according to the running nodes. */
  async primaryOf(key: string): Promise<RedisServer> {
    const witness = this.#running()[0]
    if (witness === undefined) throw new Error("no node is running")
    const slot = Number(await witness.command("CLUSTER", "KEYSLOT", key))
    const port = await whoServes(witness, slot)
    const node = this.#nodes.find((one) => one.port === port)
    if (node === undefined) throw new Error(`nobody serves slot ${slot} of ${key}`)
    return node
  }

  /**
   * Waits until the running nodes report `cluster_state:ok`, agree on the slots of each node, and have replicas in
   * sync. Frozen nodes count as running, so thaw them first.
   */
  async settled(): Promise<void> {
    await until("the cluster is settled", () => agree(this.#running()))
  }

  /**
   * Moves the slots and keys of node i to the other primaries, slot by slot while all nodes serve requests, like
   * `redis-cli --cluster reshard`. Then makes the other nodes forget the node, stops it, and removes it from `nodes`.
   * If the node is a replica, the other nodes only forget it. Replicas of a removed primary become replicas of
   * another primary.
   */
  async removeNode(i: number): Promise<void> {
    const leaving = this.#node(i)
    const members = await this.#members()
    const gone = memberOf(members, leaving)
    const heirs = members.filter((member) => member.primaryId === undefined && member !== gone)
    await moveSlots(gone, heirs)
    const others = members.filter((member) => member !== gone)
    for (const replica of others.filter((member) => member.primaryId === gone.id)) {
      await replica.node.command("CLUSTER", "REPLICATE", heirs[0]?.id ?? "")
    }
    // Send the command to all nodes at the same time. A node that still remembers the removed node would introduce it
    // to the other nodes again.
    await until("the node is forgotten", async () => {
      await Promise.all(others.map(({ node }) => forget(node, gone.id)))
      return true
    })
    await leaving.stop()
    this.#nodes = this.#nodes.filter((node) => node !== leaving)
    await this.settled()
  }

  /**
   * Promotes the replica of the primary with index i with CLUSTER FAILOVER, which needs the old primary. Resolves to
   * the new primary once all nodes know it. For a failover without the old primary, kill it and wait for `settled`.
   */
  async failover(i: number): Promise<RedisServer> {
    const members = await this.#members()
    const old = memberOf(members, this.#node(i))
    const replica = members.find((member) => member.primaryId === old.id)
    if (replica === undefined) throw new Error(`node ${i} has no replica to promote`)
    await replica.node.command("CLUSTER", "FAILOVER")
    await until("the replica is promoted", async () => {
      const now = await this.#members()
      return (
        now.find(({ id }) => id === replica.id)?.primaryId === undefined &&
        now.find(({ id }) => id === old.id)?.primaryId === replica.id
      )
    })
    await this.settled()
    return replica.node
  }

  /** Kills all nodes and removes their folders. */
  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stop()))
  }

  #running(): RedisServer[] {
    return this.#nodes.filter((node) => node.running)
  }

  #node(i: number): RedisServer {
    const node = this.#nodes[i]
    if (node === undefined) throw new RangeError(`there is no node ${i}; there are ${this.#nodes.length}`)
    return node
  }

  /** Returns the running nodes with their ids and primaries, according to themselves. */
  async #members(): Promise<ClusterMember[]> {
    return await Promise.all(
      this.#running().map(async (node) => {
        const myself = (await lines(node, "NODES")).find((line) => line.includes("myself")) ?? ""
        const [id = "", , , primaryId = "-"] = myself.split(" ")
        return { node, id, primaryId: primaryId === "-" ? undefined : primaryId }
      }),
    )
  }
}

/** Introduces the nodes to each other, and assigns slots or a primary to each node. */
async function form(nodes: readonly RedisServer[], primaries: number): Promise<void> {
  const ids = await Promise.all(nodes.map(async (node) => String(await node.command("CLUSTER", "MYID"))))
  await Promise.all(
    nodes.map(async (node, i) => {
      // Without this command, the nodes would claim slots in the same epoch and first resolve the conflicts, one
      // after the other.
      await node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
      if (i >= primaries) return
      const first = Math.ceil((i * SLOTS) / primaries)
      const end = Math.ceil(((i + 1) * SLOTS) / primaries)
      // Do not use ADDSLOTSRANGE, which needs Redis 7.
      await node.command("CLUSTER", "ADDSLOTS", ...Array.from({ length: end - first }, (_, k) => first + k))
    }),
  )
  // Introduce every node to all other nodes, because gossip alone takes seconds to spread.
  await Promise.all(
    nodes.flatMap((node, i) =>
      nodes.slice(i + 1).map((other) => node.command("CLUSTER", "MEET", other.host, other.port)),
    ),
  )
  await Promise.all(
    nodes.slice(primaries).map((replica, i) =>
      // The node refuses the command until it knows its primary.
      until("the replica follows", async () => {
        return (await replica.command("CLUSTER", "REPLICATE", ids[i % primaries] ?? "")) === "OK"
      }),
    ),
  )
}

async function forget(node: RedisServer, id: string): Promise<void> {
  const known = (await lines(node, "NODES")).some((line) => line.startsWith(id))
  if (known) await node.command("CLUSTER", "FORGET", id)
}

function memberOf(members: readonly ClusterMember[], node: RedisServer): ClusterMember {
  const member = members.find((one) => one.node === node)
  if (member === undefined) throw new Error(`the node on port ${node.port} is not running`)
  return member
}
