import { createLimiter, type Limiter, memoryStore, type Store } from "@sluice/core"
import type { CalendarRule } from "@sluice/core/adapters"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import type { Redis } from "ioredis"
import { methodsOf } from "../../packages/core/src/stores/testing/methods-of.ts"
import { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { KeysOnAClock } from "../redis/keys-on-a-clock.ts"

/** A request of an account. */
export interface Asking {
  readonly account: string
  /** What the rule's anchor function returns. */
  readonly anchor?: number | string | Date
  readonly plan?: number
}

/** Returns a store that counts by the given clock. */
export type OpenStore = (clock: ManualClock) => () => Store

let made = 0

/** Returns the stores of the tests. All processes share the counters of a world. */
export function storesOn(client: Redis): readonly (readonly [name: string, open: OpenStore])[] {
  return [
    [
      "memory",
      (clock) => {
        const shared = memoryStore({ clock })
        return () => ({ ...methodsOf(shared), isShared: true, close: () => undefined })
      },
    ],
    [
      "Redis",
      (clock) => {
        const prefix = `calendar${made++}:`
        // Redis would delete the counter of a period by its own clock, which a test cannot move.
        const { expiring: commands } = new KeysOnAClock(client, clock)
        return () => new RedisStore({ commands, prefix, denyCacheMs: 10_000, timeoutMs: 20_000, clock })
      },
    ],
  ]
}

/** Processes with one rule, and the clock of their shared store. */
export interface World {
  readonly clock: ManualClock
  /** Starts a process. Its clock is ahead of the store's clock by milliseconds. */
  start(aheadMs?: number): Limiter<Asking>
  /** The warnings of all processes. */
  readonly warnings: string[]
}

export function worldOf(open: OpenStore, rule: Partial<CalendarRule<Asking>>, at: string): World {
  const clock = manualClock(Date.parse(at))
  const storeOf = open(clock)
  const warnings: string[] = []
  const logger = { warn: (message: unknown) => void warnings.push(String(message)), error() {} }
  return {
    clock,
    warnings,
    start: (aheadMs = 0) =>
      createLimiter<Asking>({
        ...{ name: "monthly", limit: 10, per: "month", field: "account" },
        ...{ fields: { account: (request: Asking) => request.account } },
        ...rule,
        ...{ service: "shop", store: storeOf(), storeTimeoutMs: 20_000, logger },
        clock: { now: () => clock.now() + aheadMs, wait: clock.wait },
      } as Parameters<typeof createLimiter<Asking>>[0]),
  }
}
