import type { Limiter } from "@sluice/core"

/** The recorded units of a client in the current period, as PostgreSQL returns sums. */
export interface Usage {
  readonly client: string
  readonly used: string
  readonly granted: string
}

/**
 * Grants and takes the recorded units that are missing from the counters, after Redis has lost counts. The limiter has a
 * single rule, with the service, name, field and period of the app's rule, and is not recorded. The call can be repeated
 * safely, also while the app takes units. Rejects with StoreUnavailableError while Redis does not respond.
 */
export async function takeMissing(limiter: Limiter<Usage>, usage: readonly Usage[]): Promise<void> {
  for (const client of usage) {
    // One call takes at most the limit, and more may be missing if units were granted.
    for (let taken = 1; taken > 0; ) {
      const [counter] = await limiter.usage(client)
      if (counter === undefined)
        throw new Error(`The rule has no period, or does not count ${client.client}.`)
      const granted = Number(client.granted) - counter.granted
      if (granted > 0) await limiter.grant(client, granted)
      taken = (await limiter.takeUpTo(client, Math.max(0, Number(client.used) - counter.used))).cost
    }
  }
}
