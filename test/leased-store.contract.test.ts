import { storeContract } from "@sluice/contracts"
import type { ManualClock } from "../packages/core/src/ground/clock.ts"
import { leasedStore } from "../packages/core/src/stores/leased/leased-store.ts"
import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import type { Store } from "../packages/core/src/stores/store.ts"
import { runContract } from "./contracts/run-contract.ts"

function shared(clock: ManualClock): Store {
  return Object.assign(memoryStore({ clock }), { isShared: true })
}

runContract(
  "a leased store",
  storeContract({ create: (clock) => leasedStore(shared(clock), { clock }), effort: 0.2 }),
)

runContract(
  "a leased store that leases every limit",
  storeContract({ create: (clock) => leasedStore(shared(clock), { clock, leastLimit: 1 }) }),
)
