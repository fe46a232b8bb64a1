import { onHono } from "./contracts/adapter/on-hono.ts"
import { adapterContract } from "./contracts/adapter-contract.ts"

adapterContract("@sluice/fetch/hono", onHono)
