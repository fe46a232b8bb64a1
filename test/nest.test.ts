import { onNestExpress, onNestFastify } from "./contracts/adapter/on-nest.ts"
import { adapterContract } from "./contracts/adapter-contract.ts"

adapterContract("@sluice/nestjs on Express", onNestExpress)
adapterContract("@sluice/nestjs on Fastify", onNestFastify)
