import type { RedisClient } from "./clients/commands-of.ts"
import { Node } from "./node/node.ts"
import { CLIENT_CHECKS, commandsIn } from "./options.ts"
import { integerAt } from "./scripts/script-reply.ts"
import { ACTIVITY } from "./scripts.ts"

/** The options of {@link redisActivity}. */
export interface RedisActivityOptions {
  /** A client as for `redisStore`, for example the same client. */
  readonly client: RedisClient
  /**
   * A prefix for the key `sl2:{activity}`, without braces; "" by default. Only processes with the same prefix see each
   * other.
   */
  readonly prefix?: string | undefined
}

/** Where processes exchange what `recordActivity()` of `@sluice/dashboard` has recorded. */
export interface RedisActivity {
  /**
   * Stores the text of a process for ten seconds. `isWatching` marks the board as watched for ten seconds, and returns
   * the texts of the other processes. Rejects with StoreUnavailableError if Redis fails, within a second.
   */
  exchange(process: string, text: string | undefined, isWatching: boolean): Promise<RedisActivityReply>
}

/** What Redis knows of the processes. */
export interface RedisActivityReply {
  /** Whether a process has watched in the ten seconds before this call. */
  readonly isWatched: boolean
  /** Whether no further text fits. There are at most 200 texts of 256 kB, and 8 MB together. */
  readonly isFull: boolean
  /** The texts of the other processes. Empty unless the caller watches. */
  readonly texts: readonly string[]
}

const WITHIN_MS = 1_000

/**
 * Creates a board in Redis, on which processes exchange what `recordActivity()` of `@sluice/dashboard` has recorded. A
 * process writes only while somebody watches. The board is one key with a TTL of ten seconds, and contains the addresses
 * and names of clients. The board never delays a decision.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { recordActivity } from "@sluice/dashboard"
 * import { redisActivity, redisStore } from "@sluice/redis"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis(process.env.REDIS_URL ?? "redis://localhost:6379")
 * const store = redisStore({ client })
 * const limiter = createLimiter({ service: "checkout", limit: 100, window: "1 minute", store })
 * const activity = recordActivity(limiter, { shared: redisActivity({ client }) })
 * const { services } = await activity.overviewOfAll()
 * ```
 * @throws {@link InvalidOptionError}
 */
export function redisActivity(options: RedisActivityOptions): RedisActivity {
  const commands = commandsIn("redisActivity", options, CLIENT_CHECKS)
  const key = `${options.prefix ?? ""}sl2:{activity}`
  let name: string | undefined
  let node: Node | undefined
  return {
    async exchange(process, text, isWatching) {
      // A slot of a cluster may move to another server.
      if (node === undefined || name !== commands.nodeOf(key)) {
        name = commands.nodeOf(key)
        node = new Node(commands, { clock: undefined, isWide: false }, key)
      }
      const reply = await node.call(ACTIVITY, [key], [process, text ?? "", isWatching ? "1" : "0"], WITHIN_MS)
      return {
        isWatched: integerAt(reply, 0) === 1,
        isFull: integerAt(reply, 1) === 1,
        texts: reply.slice(2).map(String),
      }
    },
  }
}
