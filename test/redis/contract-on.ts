import { type Deviation, storeContract } from "@sluice/contracts"
import { afterAll, beforeAll, describe } from "vitest"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { REFUND } from "../../packages/redis/src/scripts.ts"
import { runContract } from "../contracts/run-contract.ts"
import { startCluster } from "../servers/redis-cluster.ts"
import { startRedis } from "../servers/redis-server.ts"
import { everyNth } from "../test-length.ts"
import { type Library, type OpenedClient, openClient } from "./open-client.ts"

/** Behaviors that one server has and a cluster does not. */
const OF_A_CLUSTER: readonly Deviation[] = [
  {
    behaviour: "any trace: agrees with the naive reference in every count of every result",
    reason:
      "the requests of one call whose counters are in different slots are decided at the same time, and a refused " +
      "request does not report counters in slots that it has not called or in which it has refunded units",
  },
]

let made = 0

/** Returns options with an unused prefix. Disables the deny cache, so that every reply comes from Redis. */
export function emptyOne() {
  return { prefix: `${made++}:`, denyCacheMs: 0, timeoutMs: 20_000 }
}

interface Servers {
  readonly ports: readonly number[]
  stop(): Promise<void>
}

async function startOne(): Promise<Servers> {
  const server = await startRedis()
  return { ports: [server.port], stop: () => server.stop() }
}

async function startSeveral(): Promise<Servers> {
  const cluster = await startCluster({ primaries: 3 })
  // No call waits for the refund of a refused request in other slots. If the node has loaded the script, it runs the
  // refund before the client's next request. Otherwise the refund may run later.
  for (const node of cluster.nodes) await node.command("SCRIPT", "LOAD", REFUND.text)
  return { ports: cluster.nodes.map(({ port }) => port), stop: () => cluster.stop() }
}

/** Registers the tests of the store contract for a store on each of these clients. */
export function contractOn(
  libraries: readonly Library[],
  { isCluster }: { readonly isCluster: boolean },
): void {
  describe(isCluster ? "on a cluster" : "on one server", () => {
    let servers: Servers
    beforeAll(async () => {
      servers = await (isCluster ? startSeveral() : startOne())
    })
    afterAll(() => servers?.stop())

    describe.each(libraries.map((library, nth) => [library, nth] as const))("with %s", (library, nth) => {
      let opened: OpenedClient
      beforeAll(async () => {
        opened = await openClient({ library, ports: [...servers.ports], isCluster })
      })
      afterAll(() => opened?.close())

      const behaviours = storeContract({
        create: (clock) => redisStore({ client: opened.client, clock, ...emptyOne() }),
        deviations: isCluster ? OF_A_CLUSTER : [],
        // One full run is enough, because the scripts are the same for every client, and a cluster only divides the
        // calls among servers.
        effort: library !== "ioredis 6" ? 0.1 : isCluster ? 0.5 : 1,
      })
      // Only ioredis 6 on one server runs all tests. The other clients together run every behavior once more.
      const isFull = library === "ioredis 6" && !isCluster
      runContract("the Redis store", isFull ? behaviours : everyNth(4, behaviours, nth))
    })
  })
}
