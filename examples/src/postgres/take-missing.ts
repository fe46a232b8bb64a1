import type { Limiter } from "@sluice/core"

/** The recorded units of a client, as PostgreSQL returns a sum. */
export interface Usage {
  readonly client: string
  readonly units: string
}

/**
 * Takes the recorded units that are missing from the counters, after Redis has lost counts. The limiter has a single
 * rule, with the service, name, field and period of the app's rule. The call can be repeated safely, also while the app
 * takes units. Refunded units count as used, because the records do not contain refunds.
 */
export async function takeMissing(limiter: Limiter<Usage>, usage: readonly Usage[]): Promise<void> {
  for (const client of usage) {
    const { limit, remaining, degraded } = await limiter.peek(client)
    if (degraded) throw new Error("Redis does not respond. Call takeMissing again later.")
    await limiter.takeUpTo(client, Math.max(0, Number(client.units) - (limit - remaining)))
  }
}
