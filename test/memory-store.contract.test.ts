import { manualClock } from "../packages/core/src/clock.ts"
import type { Policy } from "../packages/core/src/policy.ts"
import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import { forgetting } from "./contracts/store/forgetting.ts"
import { storeContract } from "./contracts/store-contract.ts"

storeContract("the memory store", { create: (clock) => memoryStore({ clock }) })

forgetting("the memory store", () => {
  const clock = manualClock()
  const store = memoryStore({ clock, maxKeys: 100 })
  const policy: Policy = {
    name: "other",
    counter: "other",
    algorithm: "fixed-window",
    limit: 1_000,
    windowMs: 60_000,
    align: "epoch",
  }
  // It lets go as it is used: an eighth of what a table of this size holds, with each write.
  const forget = async () => {
    for (let i = 0; i < 100; i++) store.take([[{ policy, partition: "other", cost: 1, shadow: false }]])
  }
  return { store, clock, forget }
})
