import { setTimeout as sleep } from "node:timers/promises"
import { createLimiter, type Limiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { connect } from "../redis/connect.ts"

export type Account = { readonly account: string }

/** A limiter with one monthly rule. Requests that Redis does not count are refused, so each admitted unit was counted. */
export interface Month {
  readonly limiter: Limiter<Account>
  close(): Promise<void>
}

export const LIMIT = 1_000_000

/** Opens a limiter that counts months in the Redis on `port`. */
export async function openMonth(port: number, limit: number = LIMIT): Promise<Month> {
  const client = await connect(port)
  // The benchmark kills the server, so lost connections are expected.
  client.on("error", () => {})
  const store = redisStore({ client, denyCacheMs: 0 })
  const quiet = { warn() {}, error() {} }
  const limiter = createLimiter<Account>({
    ...{ service: "durability", name: "month", limit, per: "month" },
    ...{ field: "account", fields: { account: ({ account }) => account } },
    ...{ store, onStoreFailure: "deny", storeTimeoutMs: 1_000, logger: quiet },
  })
  return {
    limiter,
    async close() {
      await limiter.close()
      await store.close()
      client.disconnect()
    },
  }
}

/** Starts `perSecond` calls of `send` a second until the signal is aborted, and waits for all of them. */
export async function sendSteadily(
  perSecond: number,
  stopped: AbortSignal,
  send: (nth: number) => Promise<void>,
): Promise<void> {
  const startMs = performance.now()
  const pending: Promise<void>[] = []
  while (!stopped.aborted) {
    const due = ((performance.now() - startMs) * perSecond) / 1_000
    while (pending.length < due) pending.push(send(pending.length))
    await sleep(1)
  }
  await Promise.all(pending)
}
