import type { RedisClient } from "@sluice/redis"
import { commandsOf } from "../../packages/redis/src/clients/commands-of.ts"
import { RedisStore, type RedisStoreParts } from "../../packages/redis/src/redis-store.ts"

/**
 * Creates a store that may have a clock and yet uses the values of a store without one. The store caches no refusals.
 */
export function compactStore(
  client: RedisClient,
  clock?: RedisStoreParts["clock"],
  more: Partial<RedisStoreParts> = {},
): RedisStore {
  const usual = { prefix: "", denyCacheMs: 0, timeoutMs: 20_000, isWide: false }
  return new RedisStore({ commands: commandsOf(client), clock, ...usual, ...more })
}
