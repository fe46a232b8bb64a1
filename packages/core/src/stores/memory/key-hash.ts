import { getRandomValues } from "node:crypto"
import type { Keys } from "../counters.ts"

/** The 64 bits of a key, as two unsigned words. */
export interface KeyHash {
  low: number
  high: number
}

/** Whether both are of one key. */
export function isSameKey(one: KeyHash, other: KeyHash): boolean {
  return one.low === other.low && one.high === other.high
}

/** Keys that are hashes, by a secret of their own. */
export function hashedKeys(): Keys<KeyHash> {
  const hash = keyHasher()
  return {
    of(counter, partition, reused) {
      const key = reused ?? { low: 0, high: 0 }
      hash(counter, partition, key)
      return key
    },
    areSame: isSameKey,
  }
}

/** Writes the hash of a counter and a partition to `into`. */
export type KeyHasher = (counter: string, partition: string, into: KeyHash) => void

/**
 * HalfSipHash-1-3 with 64 bits of output (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", the
 * variant on 32-bit words that Linux uses for its hash tables). The message is the counter's length, the counter and
 * the partition, in UTF-16 code units, little-endian, each text padded to whole words but the last.
 *
 * It is keyed with a secret of the process, so nobody can choose partitions that collide, and it stands in for the
 * key in memory: at a million keys the chance that any two share 64 bits is below 1 in 30 million.
 */
export function keyHasher(secret: readonly [number, number] = randomSecret()): KeyHasher {
  const starts = new Map<string, Int32Array>()
  let lastCounter: string | undefined
  let start: Int32Array = new Int32Array(0)

  // One loop over the partition with one look at a character: this runs after a few hundred kB of other code, so what it
  // costs is how much of it there is.
  // The round is written out in both loops, as in `absorb`: a function of it would hand over its four words through memory.
  return (counter, partition, into) => {
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
    // One round for the last word, three to finish, three more for the second half.
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
  }

  /** What comes of a counter before any partition; remembered, as a process has few and asks for the same ones again and again. */
  function startOf(counter: string): Int32Array {
    const known = starts.get(counter)
    if (known !== undefined) return known
    if (starts.size >= MAX_STARTS) starts.clear()
    const made = afterCounter(counter, secret)
    starts.set(counter, made)
    return made
  }
}

/** Counters whose start is remembered. */
const MAX_STARTS = 1_000

/** The four words of state when the length and the units of the counter are absorbed; the fifth is how many bytes these are. */
function afterCounter(counter: string, [k0, k1]: readonly [number, number]): Int32Array {
  const words = [counter.length]
  // Beyond the end there is NaN, which is 0 as bits.
  for (let i = 0; i < counter.length; i += 2) {
    words.push(counter.charCodeAt(i) | (counter.charCodeAt(i + 1) << 16))
  }
  const state = Int32Array.of(k0, k1 ^ 0xee, k0 ^ 0x6c796765, k1 ^ 0x74656462, 4 * words.length)
  for (const word of words) absorb(word, state)
  return state
}

/** A round by itself, where it does not matter how long one takes: a counter is seen to once. */
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
  const words = getRandomValues(new Int32Array(2))
  return [words[0] as number, words[1] as number]
}
