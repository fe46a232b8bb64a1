import type { RedisClient } from "@sluice/redis"
import { commandsOf } from "../../packages/redis/src/clients/commands-of.ts"
import { RedisStore, type RedisStoreParts } from "../../packages/redis/src/redis-store.ts"

/**
 * Creates a store that stores compact values even if it has a clock. Other stores use compact values only without a
 * clock. This store caches no refusals.
 */
export function compactStore(
  client: RedisClient,
  clock?: RedisStoreParts["clock"],
  more: Partial<RedisStoreParts> = {},
): RedisStore {
  const usual = { prefix: "", denyCacheMs: 0, timeoutMs: 20_000, isWide: false }
  return new RedisStore({ commands: commandsOf(client), clock, ...usual, ...more })
}
