import { type ExpiringStore, storeContract, storeExpiryContract } from "@sluice/contracts"
import { manualClock } from "../packages/core/src/ground/manual-clock.ts"
import type { Policy } from "../packages/core/src/ground/policy.ts"
import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import { runContract } from "./contracts/run-contract.ts"

runContract("the memory store", storeContract({ create: (clock) => memoryStore({ clock }) }))

runContract("the memory store", storeExpiryContract({ create: smallStore }))

function smallStore(): ExpiringStore {
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
  // The store removes expired entries when it is used. On average, a write examines an eighth of a table of this
  // size.
  const forget = async () => {
    for (let i = 0; i < 100; i++) store.take([{ policy, partition: "other", cost: 1, shadow: false }])
  }
  return { store, clock, forget }
}
