import { randomFillSync } from "node:crypto"
import type { NameKey } from "../counters.ts"

/** The 64-bit hash of a key, as two unsigned 32-bit words. */
export interface KeyHash {
  low: number
  high: number
}

/**
 * Returns a hasher for HalfSipHash-1-3 with 64 bits of output (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast
 * short-input PRF"). HalfSipHash is the variant of SipHash with 32-bit words that Linux uses for its hash tables.
 *
 * The message is the counter's length, the counter and the partition, in UTF-16 code units, little-endian. The counter
 * is padded to whole words.
 *
 * The hash is keyed with a secret of the process, so clients cannot choose partitions that collide. The memory store
 * stores the hash instead of the key. With a million keys, the probability that any two share all 64 bits is below 1
 * in 30 million.
 */
export function keyHasher(secret?: readonly [number, number]): NameKey<KeyHash> {
  let drawn = secret
  const starts = new Map<string, Int32Array>()
  let lastCounter: string | undefined
  let start: Int32Array = new Int32Array(0)

  // A single loop reads each character once. Between two calls, a few hundred kB of other code evict this function
  // from the CPU cache, so its cost depends mostly on its size.
  //
  // The round is written out in both loops, as in `absorb`. A function for the round would pass its four words
  // through memory.
  return (counter, partition, into = { low: 0, high: 0 }) => {
    if (counter !== lastCounter) {
      start = startOf(counter)
      lastCounter = counter
    }
    let v0 = start[0] as number
    let v1 = start[1] as number
    let v2 = start[2] as number
    let v3 = start[3] as number
    const { length } = partition
    let word = 0
    for (let i = 0; i < length; i++) {
      const unit = partition.charCodeAt(i)
      if ((i & 1) === 0) {
        word = unit
        continue
      }
      word |= unit << 16
      v3 ^= word
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
    }

    const last = (((start[4] as number) + 2 * length) << 24) | ((length & 1) === 1 ? word : 0)
    v3 ^= last
    // One round for the last word, three to finish the first half of the output, and three more for the second half.
    for (let round = 0; round < 7; round++) {
      if (round === 1) {
        v0 ^= last
        v2 ^= 0xee
      } else if (round === 4) {
        into.low = (v1 ^ v3) >>> 0
        v1 ^= 0xdd
      }
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
    }
    into.high = (v1 ^ v3) >>> 0
    return into
  }

  /**
   * Returns the hash state after the counter, before any partition. The state is cached, because a process has few
   * counters and uses them repeatedly.
   */
  function startOf(counter: string): Int32Array {
    const known = starts.get(counter)
    if (known !== undefined) return known
    if (starts.size >= MAX_STARTS) starts.clear()
    // Cloudflare Workers allow random values only while a request is handled, so do not draw them when the app starts.
    drawn ??= randomSecret()
    const made = afterCounter(counter, drawn)
    starts.set(counter, made)
    return made
  }
}

/** Maximum number of cached hash states. */
const MAX_STARTS = 1_000

/**
 * Returns the four words of the hash state after absorbing the length and the code units of the counter. The fifth
 * word is the number of bytes absorbed.
 */
function afterCounter(counter: string, [k0, k1]: readonly [number, number]): Int32Array {
  const words = [counter.length]
  // Beyond the end, `charCodeAt` returns NaN, which bit operations treat as 0.
  for (let i = 0; i < counter.length; i += 2) {
    words.push(counter.charCodeAt(i) | (counter.charCodeAt(i + 1) << 16))
  }
  const state = Int32Array.of(k0, k1 ^ 0xee, k0 ^ 0x6c796765, k1 ^ 0x74656462, 4 * words.length)
  for (const word of words) absorb(word, state)
  return state
}

/** Absorbs one word into the state. Its speed does not matter, because each counter is absorbed only once. */
function absorb(word: number, state: Int32Array): void {
  let [v0, v1, v2, v3] = state as unknown as [number, number, number, number]
  v3 ^= word
  v0 = (v0 + v1) | 0
  v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
  v0 = (v0 << 16) | (v0 >>> 16)
  v2 = (v2 + v3) | 0
  v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
  v0 = (v0 + v3) | 0
  v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
  v2 = (v2 + v1) | 0
  v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
  v2 = (v2 << 16) | (v2 >>> 16)
  state.set([v0 ^ word, v1, v2, v3])
}

function randomSecret(): [number, number] {
  const words = randomFillSync(new Int32Array(2))
  return [words[0] as number, words[1] as number]
}
