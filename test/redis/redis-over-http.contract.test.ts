import { storeContract } from "@sluice/contracts"
import { afterAll, beforeAll } from "vitest"
import { redisOverHttp } from "../../packages/redis/src/clients/redis-over-http.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { runContract } from "../contracts/run-contract.ts"
import { type RedisFront, startFront, TOKEN } from "../servers/redis-over-http.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { everyNth } from "../test-length.ts"
import { emptyOne } from "./contract-on.ts"

let redis: RedisServer
let front: RedisFront
beforeAll(async () => {
  redis = await startRedis()
  front = await startFront(redis.port)
})
afterAll(async () => {
  await front?.stop()
  await redis?.stop()
})

const behaviours = storeContract({
  create(clock) {
    const client = redisOverHttp({ url: front.url, token: TOKEN })
    return redisStore({ client, clock, ...emptyOne() })
  },
  deviations: [],
  effort: 0.1,
})
// The scripts are the same for every client, so a few behaviors are enough.
runContract("the Redis store over HTTP", everyNth(24, behaviours))
