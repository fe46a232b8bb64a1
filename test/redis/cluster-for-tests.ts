import { afterAll } from "vitest"
import { type ClusterOptions, type RedisCluster, startCluster } from "../servers/redis-cluster.ts"
import { LIBRARIES, type Library, type OpenedClient, openClient } from "./open-client.ts"

/**
 * Starts a cluster for all tests of a file, and opens a client of each library. Closes all clients and stops the
 * cluster after these tests.
 */
export async function clusterForTests(
  options: ClusterOptions,
  libraries: readonly Library[] = LIBRARIES,
): Promise<{ readonly cluster: RedisCluster; readonly clients: readonly OpenedClient[] }> {
  const cluster = await startCluster(options)
  const ports = cluster.nodes.map(({ port }) => port)
  const clients = await Promise.all(
    libraries.map((library) => openClient({ library, ports, isCluster: true })),
  )
  afterAll(async () => {
    for (const { close } of clients) close()
    await cluster.stop()
  })
  return { cluster, clients }
}
