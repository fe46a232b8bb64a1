import { afterEach, expect, it } from "vitest"
import { isAlive } from "./processes.ts"
import { type ClusterOptions, type RedisCluster, startCluster } from "./redis-cluster.ts"

const started: RedisCluster[] = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((cluster) => cluster.stop()))
})

async function start(options: ClusterOptions): Promise<RedisCluster> {
  const cluster = await startCluster(options)
  started.push(cluster)
  return cluster
}

const KEYS = Array.from({ length: 300 }, (_, i) => `key-${i}`)

async function write(cluster: RedisCluster): Promise<void> {
  for (const key of KEYS) await (await cluster.primaryOf(key)).command("SET", key, key)
}

/** The reply of whoever `primaryOf` names; a node that does not serve the key answers MOVED, which rejects. */
async function read(cluster: RedisCluster): Promise<unknown[]> {
  return await Promise.all(KEYS.map(async (key) => (await cluster.primaryOf(key)).command("GET", key)))
}

it("serves all slots, and moves those of a node that leaves with their keys", async () => {
  const cluster = await start({ primaries: 3 })
  await write(cluster)
  const shares = await Promise.all(cluster.nodes.map((node) => node.command("DBSIZE")))
  expect(shares.every((keys) => Number(keys) > 50)).toBe(true)

  const [, leaving] = cluster.nodes
  const pid = leaving?.pid ?? 0
  await cluster.removeNode(1)
  expect(cluster.nodes).toHaveLength(2)
  expect(cluster.nodes).not.toContain(leaving)
  expect(isAlive(pid)).toBe(false)
  expect(await read(cluster)).toEqual(KEYS)
  for (const node of cluster.nodes) {
    const info = String(await node.command("CLUSTER", "INFO"))
    expect(info).toContain("cluster_slots_ok:16384")
    expect(info).toContain("cluster_known_nodes:2")
  }
})

it("promotes a replica when asked and when its primary dies", async () => {
  const cluster = await start({ primaries: 3, replicas: 1 })
  const pids = cluster.nodes.map((node) => node.pid)
  await write(cluster)

  const promoted = await cluster.failover(0)
  expect(cluster.nodes.indexOf(promoted)).toBe(3)
  expect(String(await promoted.command("INFO", "replication"))).toContain("role:master")
  expect(String(await cluster.nodes[0]?.command("INFO", "replication"))).toContain("master_link_status:up")
  expect(await read(cluster)).toEqual(KEYS)

  const victim = cluster.nodes[1]
  await victim?.kill()
  await cluster.settled()
  expect(String(await cluster.nodes[4]?.command("INFO", "replication"))).toContain("role:master")
  expect(await read(cluster)).toEqual(KEYS)

  await victim?.restart()
  await cluster.settled()
  expect(String(await victim?.command("INFO", "replication"))).toContain("role:slave")

  await cluster.stop()
  expect(pids.filter(isAlive)).toEqual([])
})
