import { hashText } from "@sluice/core/kit"
import type { CounterKey } from "@sluice/core/stores"

/**
 * Matches a partition that a key contains unchanged: printable ASCII, which operators can read and which has only one
 * encoding. All other partitions are hashed. "#" marks a hash, so a partition that begins with "#" is hashed too. The
 * rest of the key is about 24 bytes long.
 */
const PLAIN = /^(?!#)[\x20-\x7e]{0,64}$/
const GROUPS = 256

/**
 * Returns a function that returns the Redis key of a counter: `sl2:{7f}Zk3hX0pQ9vLm2TcY203.0.113.10`. The digit is
 * the number of the layout of keys and values (scripts/layout.lua). A new layout gets a new digit, so that no version
 * misreads values that another version has written. With a new layout, counters start from zero. The hash tag is one
 * of 256 groups. The partition determines the group, so that the checks of one client share a slot of a cluster. The
 * policy's counter (16 characters) and the partition follow the hash tag. No two counters have the same key.
 */
export function keyNamer(prefix: string): (counter: CounterKey) => string {
  /** For each group, the part of a key that precedes the counter. */
  const heads = Array.from({ length: GROUPS }, (_, group) => {
    return `${prefix}sl2:{${group.toString(16).padStart(2, "0")}}`
  })
  // Cache the latest partition, because the checks of one request, and requests in a burst, usually have the same
  // one.
  let lastPartition: string | undefined
  let lastText: string
  let lastGroup: number

  return ({ policy: { counter }, partition }) => {
    // For a whole-service counter, the group depends on the counter. Otherwise one cluster node would serve all such
    // counters.
    if (partition === "") return heads[groupOf(counter)] + counter
    if (partition !== lastPartition) {
      lastPartition = partition
      lastText = textOf(partition)
      lastGroup = groupOf(partition)
    }
    return heads[lastGroup] + counter + lastText
  }
}

/**
 * Returns the Redis key in which `redisStore` stores a counter: `sl2:{7f}Zk3hX0pQ9vLm2TcY203.0.113.10`. `prefix` is
 * the store's `prefix` option.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { redisKey } from "@sluice/redis"
 *
 * const limiter = createLimiter({ limit: 10, window: "1 minute" })
 * const [{ counter } = {}] = await limiter.explain({ remoteAddress: "192.0.2.7" })
 * const key = counter && redisKey(counter) // "sl2:{…}…192.0.2.7"
 * ```
 */
export function redisKey(counter: CounterKey, prefix = ""): string {
  return keyNamer(prefix)(counter)
}

/**
 * Returns the text's FNV-1a hash modulo 256. The high bits are combined with the low bits, because the low bits alone
 * are badly distributed.
 */
function groupOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 8) ^ (hash >>> 16) ^ (hash >>> 24)) & 0xff
}

function textOf(partition: string): string {
  return PLAIN.test(partition) ? partition : hashText(partition)
}
