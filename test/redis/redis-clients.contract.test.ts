import { contractOn } from "./contract-on.ts"

contractOn(["ioredis 5", "node-redis 6", "node-redis 5", "Valkey GLIDE", "iovalkey"], { isCluster: false })
contractOn(["node-redis 6", "Valkey GLIDE"], { isCluster: true })
