import { storeContract } from "@sluice/contracts"
import type { ManualClock } from "../packages/core/src/ground/manual-clock.ts"
import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import type { Store } from "../packages/core/src/stores/store.ts"
import { mirroredStore } from "../packages/scale/src/mirrored/mirrored-store.ts"
import { runContract } from "./contracts/run-contract.ts"

function shared(clock: ManualClock): Store {
  return Object.assign(memoryStore({ clock }), { isShared: true })
}

runContract(
  "a mirrored store",
  storeContract({
    create: (clock) => mirroredStore({ near: shared(clock), far: { eu: shared(clock) }, clock }),
  }),
)
