import { Redis } from "ioredis"
import { afterAll, beforeAll, describe } from "vitest"
import { RedisStore, redisStore } from "../../packages/core/src/stores/redis/redis-store.ts"
import { GIVE_BACK } from "../../packages/core/src/stores/redis/scripts.ts"
import { type Deviation, storeContract } from "../contracts/store-contract.ts"
import { type RedisCluster, startCluster } from "../servers/redis-cluster.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { KeysOnAClock } from "./keys-on-a-clock.ts"
import { type Library, type OpenedClient, openClient } from "./open-client.ts"

let server: RedisServer
let cluster: RedisCluster
let made = 0

beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster({ primaries: 3 })])
  // Nobody waits until a request that is refused has given back what it took in other slots. Where the node knows the
  // script it is done before the client's next question; the very first time it may be after it.
  for (const node of cluster.nodes) await node.command("SCRIPT", "LOAD", GIVE_BACK.text)
})
afterAll(async () => {
  await Promise.all([server?.stop(), cluster?.stop()])
})

const LIBRARIES: readonly Library[] = ["ioredis 6", "ioredis 5", "node-redis 6", "node-redis 5"]

/** What holds of one server and not of a cluster. */
const OF_A_CLUSTER: readonly Deviation[] = [
  {
    behaviour: "agrees with the naive reference, to every count of every answer",
    reason:
      "the requests of one call whose counters are in different slots are decided at the same time, and a request that " +
      "is refused does not tell of counters in slots that it had not come to or has given back",
  },
]

/** By a prefix of its own. Refusals are asked of Redis anew, so that every count is told. */
function emptyOne() {
  return { prefix: `${made++}:`, denyCacheMs: 0, timeoutMs: 20_000 }
}

function contractOn(library: Library, isCluster: boolean): void {
  describe(`with ${library}${isCluster ? ", on a cluster" : ""}`, () => {
    let opened: OpenedClient
    beforeAll(async () => {
      const ports = isCluster ? cluster.nodes.map(({ port }) => port) : [server.port]
      opened = await openClient({ library, ports, isCluster })
    })
    afterAll(() => opened?.close())

    storeContract("the Redis store", {
      create: (clock) => redisStore({ client: opened.client, clock, ...emptyOne() }),
      deviations: isCluster ? OF_A_CLUSTER : [],
      // The scripts are the same behind every client.
      traces: library === "ioredis 6" ? 1 : 0.2,
    })
  })
}

for (const library of LIBRARIES) contractOn(library, false)
for (const library of ["ioredis 6", "node-redis 6"] as const) contractOn(library, true)

describe("by a server's own time", () => {
  let client: Redis
  beforeAll(() => {
    client = new Redis(server.port, server.host)
  })
  afterAll(() => client?.disconnect())

  // The layout is the one that counters have without a clock of the app's: integers and hashes, which expire by the clock.
  storeContract("the Redis store", {
    create: (clock) => {
      const { expiring: commands } = new KeysOnAClock(client, clock)
      return new RedisStore({ commands, clock, isWide: false, ...emptyOne() })
    },
  })
})
