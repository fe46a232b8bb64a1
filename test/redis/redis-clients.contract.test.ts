import { contractOn } from "./contract-on.ts"

contractOn(["ioredis 5", "node-redis 6", "node-redis 5"], { isCluster: false })
contractOn(["node-redis 6"], { isCluster: true })
