import cluster from "node:cluster"
import { once } from "node:events"
import { createLimiter, memoryStore } from "@sluice/core"
import { transactionalStore } from "@sluice/core/stores"

/** The store in which the limiter counts, as one word for each case of cluster-workers.test.ts. */
const mode = process.argv[2]
const logger = {
  warn: ({ code }: { code: string }) => console.log(`${cluster.isWorker ? "worker" : "primary"} ${code}`),
  error() {},
}

const rule = { limit: 5, window: "1 minute", service: "shop", logger } as const
if (mode === "memory") {
  createLimiter({ ...rule, name: "default" })
  createLimiter({ ...rule, name: "given", store: memoryStore() })
}
if (mode === "disabled") createLimiter({ ...rule, enabled: false })
if (mode === "shared") createLimiter({ ...rule, store: transactionalStore({ transact: () => undefined }) })

if (cluster.isWorker) process.exit()
await once(cluster.fork(), "exit")
console.log("done")
