import type { Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { type LeasedStoreOptions, leasedStore, mirroredStore, writeBackStore } from "@sluice/scale"
import { createClient } from "redis"

const shared = redisStore({ client: createClient() })
const eu = redisStore({ client: createClient(), prefix: "eu:" })
const options: LeasedStoreOptions = { leaseMs: 500, rules: (name) => name === "all" }

export const stores: readonly Store[] = [
  leasedStore(shared, options),
  leasedStore(mirroredStore({ near: shared, far: { eu } })),
  writeBackStore(shared, { instances: 4, settleMs: 200 }),
]

// @ts-expect-error a client is not a store
leasedStore(createClient())
// @ts-expect-error the near store is missing
mirroredStore({ far: { eu } })
