import type { RedisServer } from "./redis-server.ts"

/** A running node, with its description of itself. */
export interface ClusterMember {
  readonly node: RedisServer
  readonly id: string
  /** The id of the node's primary, or undefined if the node is a primary. */
  readonly primaryId: string | undefined
}

/** Returns the lines of a `CLUSTER` command that responds with text, such as NODES. */
export async function lines(node: RedisServer, command: string): Promise<string[]> {
  return String(await node.command("CLUSTER", command))
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
}

/**
 * Returns the port of the primary that serves a slot, according to `witness`, or undefined if the witness does not
 * know it.
 */
export async function whoServes(witness: RedisServer, slot: number): Promise<number | undefined> {
  const ranges = await witness.command("CLUSTER", "SLOTS")
  if (!Array.isArray(ranges)) return undefined
  const range: unknown = ranges.find(([first, last]) => first <= slot && slot <= last)
  const primary: unknown = Array.isArray(range) ? range[2] : undefined
  return Array.isArray(primary) ? Number(primary[1]) : undefined
}

/**
 * Resolves to true if together `nodes` serve every slot, and agree on primaries, replicas and slots. No node may
 * consider another node failed, and all replicas must be in sync.
 */
export async function agree(nodes: readonly RedisServer[]): Promise<boolean> {
  const views = await Promise.all(nodes.map((node) => viewOf(node, nodes)))
  return views.every((view) => view !== undefined && view === views[0])
}

/** Returns a node's view of `nodes` as comparable text, or undefined while the node is not healthy. */
async function viewOf(node: RedisServer, nodes: readonly RedisServer[]): Promise<string | undefined> {
  const info = await lines(node, "INFO")
  if (!info.includes("cluster_state:ok") || !info.includes("cluster_slots_ok:16384")) return undefined
  const replication = String(await node.command("INFO", "replication"))
  if (replication.includes("role:slave") && !replication.includes("master_link_status:up")) return undefined
  const view: string[] = []
  for (const line of await lines(node, "NODES")) {
    const [id, address = "", flags = "", primaryId, , , , , ...slots] = line.split(" ")
    const port = Number(/:(\d+)@/.exec(address)?.[1])
    if (!nodes.some((one) => one.port === port)) continue
    if (/handshake|fail|noaddr/.test(flags)) return undefined
    view.push(`${id} ${flags.replace("myself,", "")} ${primaryId} ${slots.join(" ")}`)
  }
  return view.length === nodes.length ? view.sort().join("\n") : undefined
}
