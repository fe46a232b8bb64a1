import { contractOn } from "./contract-on.ts"

contractOn(["ioredis 6"], { isCluster: false })
contractOn(["ioredis 6"], { isCluster: true })
