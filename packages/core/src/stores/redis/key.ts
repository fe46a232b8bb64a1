import { createHash } from "node:crypto"
import type { CounterKey } from "../store.ts"

/** Longer partitions are hashed. The rest of a key takes some 24 bytes, so no key is much longer than this. */
const LONGEST_TEXT = 64
/** Before a hash; a partition that begins with it is hashed too, so no text is taken for a hash. */
const HASHED = "#"
const GROUPS = 256
/** Rules whose texts are kept at hand; a process that has seen more begins anew. */
const MOST_COUNTERS = 1_000

/**
 * Returns a function that names the keys of counters in Redis: `sl2:{7f}Zk3hX0pQ9vLm2TcY203.0.113.10`. The digit is the
 * layout of keys and of their values (scripts/layout.lua). A new layout gets a new digit, so that no version misreads what
 * another has written; its counters start from zero. The hash tag is one of 256 groups, chosen by the partition, so that
 * the checks of one client share a slot of a cluster. The policy's counter (16 characters) and the partition follow. No two
 * counters have the same key.
 */
export function keyNamer(prefix: string): (counter: CounterKey) => string {
  /** By counter and group all that comes before the partition: one text to put together a key, not six. */
  const heads = new Map<string, (string | undefined)[]>()
  // The checks of one request mostly have one partition, and so have requests in a burst.
  let lastPartition: string | undefined
  let lastText: string
  let lastGroup: number

  const headOf = (counter: string, group: number): string => {
    let known = heads.get(counter)
    if (known === undefined) {
      if (heads.size >= MOST_COUNTERS) heads.clear()
      known = new Array<string | undefined>(GROUPS).fill(undefined)
      heads.set(counter, known)
    }
    known[group] ??= `${prefix}sl2:{${group.toString(16).padStart(2, "0")}}${counter}`
    return known[group]
  }

  return ({ policy: { counter }, partition }) => {
    // One counter for the whole service: all of them in one group would make one node of a cluster carry them all.
    if (partition === "") return headOf(counter, groupOf(counter))
    if (partition !== lastPartition) {
      lastPartition = partition
      lastText = textOf(partition)
      lastGroup = groupOf(partition)
    }
    return headOf(counter, lastGroup) + lastText
  }
}

/** FNV-1a, folded, since its low bits alone are weak. */
function groupOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 8) ^ (hash >>> 16) ^ (hash >>> 24)) & 0xff
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
