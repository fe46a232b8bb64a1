import { type ExpiringStore, storeExpiryContract } from "@sluice/contracts"
import { FORGETTABLE } from "../../packages/contracts/src/store-expiry-contract.ts"
import { manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { runContract } from "../contracts/run-contract.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { KeysOnAClock } from "./keys-on-a-clock.ts"

const { client } = await redisForTests()
let made = 0

runContract("the Redis store", storeExpiryContract({ create: storeOnAClock }))

function storeOnAClock(): ExpiringStore {
  const clock = manualClock()
  const prefix = `${made++}:`
  const keys = new KeysOnAClock(client, clock, FORGETTABLE.map(keyNamer(prefix)))
  const { commands } = keys
  const store = new RedisStore({ commands, prefix, denyCacheMs: 0, timeoutMs: 20_000, clock, isWide: false })
  return { store, clock, forget: async () => void (await keys.expire()) }
}
