import { memoryStore } from "@sluice/core"
import { SluiceStore, type SluiceStoreOptions } from "@sluice/express-rate-limit-store"
import { rateLimit, type Store } from "express-rate-limit"
import { createClient } from "redis"

const strict: SluiceStoreOptions = { algorithm: "sliding-window-strict", buckets: 10, instances: 4 }
const stores: readonly SluiceStore[] = [
  new SluiceStore(),
  new SluiceStore({ ...strict, client: createClient(), prefix: "login:" }),
  new SluiceStore({ penalty: { refusals: 10, for: "1 hour" } }),
  new SluiceStore({ store: memoryStore({ maxKeys: 1_000 }), largestLimit: 100 }),
]
export const limits = stores.map((store) => rateLimit({ limit: async () => 10, store }))
export const asStore: Store = new SluiceStore()

const [store] = stores
store?.limiter.on("decision", ({ allowed }, key) => {
  if (!allowed) console.log(key.toUpperCase())
})

// @ts-expect-error a leaky bucket holds requests, which express-rate-limit cannot
new SluiceStore({ algorithm: "leaky-bucket" })
// @ts-expect-error the option of rate-limit-redis
new SluiceStore({ sendCommand: () => [1, 1] })
