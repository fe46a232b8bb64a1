// A process with limiters that shares what it records. Its parent process sends it orders.
import { createLimiter } from "@sluice/core"
import { recordActivity } from "@sluice/dashboard"
import { redisActivity } from "@sluice/redis"
import { Redis } from "ioredis"
import { REQUESTS, TRAFFIC } from "./traffic.ts"

/** An order to a process: to send every third request, to return its overview, or to end by itself. */
export type Order = { readonly send: number } | "overview" | "leave"

const { port } = JSON.parse(process.argv[2] ?? "") as { readonly port: number }
const client = new Redis(port)
client.on("error", () => undefined)
const limiters = Object.keys(TRAFFIC).map((service) =>
  createLimiter({ service, name: "calls", limit: 1, window: "1 hour", algorithm: "fixed-window" }),
)
const activity = recordActivity(limiters, { shared: redisActivity({ client }) })
process.once("disconnect", () => process.exit())
process.on("message", async (order: Order) => {
  if (order === "overview") process.send?.(await activity.overviewOfAll())
  else if (order !== "leave") process.send?.(await send(order.send))
  else {
    // The timers of the activity must not keep the process alive, although nothing stops them.
    client.disconnect()
    process.removeAllListeners("disconnect")
    process.disconnect()
  }
})
process.send?.("ready")

/** Sends requests of each traffic, and returns how often each client was refused. */
async function send(first: number): Promise<Record<string, [client: string, refusals: number][]>> {
  const refusals: Record<string, [string, number][]> = {}
  for (const [i, [service, clientOf]] of Object.entries(TRAFFIC).entries()) {
    const refused = new Map<string, number>()
    for (let nth = first; nth < REQUESTS; nth += 3) {
      const remoteAddress = clientOf(nth)
      const { allowed } = (await limiters[i]?.decide({ remoteAddress })) ?? { allowed: true }
      if (!allowed) refused.set(remoteAddress, (refused.get(remoteAddress) ?? 0) + 1)
    }
    refusals[service] = [...refused]
  }
  return refusals
}
