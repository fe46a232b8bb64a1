import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import { storeContract } from "./contracts/store-contract.ts"

storeContract("the memory store", { create: (clock) => memoryStore({ clock }) })
