import { createHash } from "node:crypto"
import type { CounterKey } from "../store.ts"

/** Longer partitions are hashed: a key has some 20 bytes beside the partition, and is never much longer than this. */
const LONGEST_TEXT = 64
/** Before a hash; a partition that begins with it is hashed too, so no text is taken for a hash. */
const HASHED = "#"
const HEX: readonly string[] = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"))

/**
 * The key of a counter in Redis: `sl1:{7f}Zk3hX0pQ203.0.113.10`. 1 is the layout; the hash tag is one of 256 groups, by
 * the partition, so that the checks of one client share a slot of a cluster; then the policy's counter, which has 8
 * characters, and the partition. No two counters have the same key.
 */
export function keyOf(prefix: string, { policy, partition }: CounterKey): string {
  return `${prefix}sl1:{${groupOf(policy.counter, partition)}}${policy.counter}${textOf(partition)}`
}

/** The hash tag: by the partition, or by the counter where one counter is for the whole service. */
function groupOf(counter: string, partition: string): string {
  const text = partition === "" ? counter : partition
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  // The low bits of FNV-1a alone are weak.
  return HEX[(hash ^ (hash >>> 8) ^ (hash >>> 16) ^ (hash >>> 24)) & 0xff] as string
}

function textOf(partition: string): string {
  if (partition.length > LONGEST_TEXT || !isPlain(partition)) {
    // As UTF-16: in UTF-8 two broken texts may be the same bytes. 22 characters are 132 bits.
    return HASHED + createHash("sha256").update(partition, "utf16le").digest("base64url").slice(0, 22)
  }
  return partition
}

/** Printable ASCII that is no hash: an operator can read it, and it has one spelling. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x20 || code > 0x7e) return false
  }
  return !text.startsWith(HASHED)
}
