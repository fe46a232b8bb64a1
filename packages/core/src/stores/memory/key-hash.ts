import { getRandomValues } from "node:crypto"

/** The 64 bits of a key, as two unsigned words. */
export interface KeyHash {
  low: number
  high: number
}

/** Whether both are of one key. */
export function isSameKey(one: KeyHash, other: KeyHash): boolean {
  return one.low === other.low && one.high === other.high
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
  const [k0, k1] = secret
  // What comes of a counter before any partition: of the last one, as most processes have few and ask for one again and again.
  let lastCounter: string | undefined
  let c0 = 0
  let c1 = 0
  let c2 = 0
  let c3 = 0

  return (counter, partition, into) => {
    const absorbed = (counter.length + 1) >> 1
    const words = partition.length >> 1
    // Stryker disable next-line ConditionalExpression: it is worked out anew
    const isKnown = counter === lastCounter
    let v0 = isKnown ? c0 : k0
    let v1 = isKnown ? c1 : k1 ^ 0xee
    let v2 = isKnown ? c2 : k0 ^ 0x6c796765
    let v3 = isKnown ? c3 : k1 ^ 0x74656462

    // Written out rather than shared by a function: five values in flight, and this is the hottest loop there is.
    for (let i = isKnown ? absorbed : -1; i < absorbed + words; i++) {
      // Stryker disable next-line ConditionalExpression,BlockStatement: it is worked out anew
      if (i === absorbed) {
        lastCounter = counter
        c0 = v0
        c1 = v1
        c2 = v2
        c3 = v3
      }
      let word: number
      if (i < 0) word = counter.length
      else if (i < absorbed) word = counter.charCodeAt(2 * i) | (counter.charCodeAt(2 * i + 1) << 16)
      else {
        const at = 2 * (i - absorbed)
        word = partition.charCodeAt(at) | (partition.charCodeAt(at + 1) << 16)
      }
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

    const bytes = 4 * (1 + absorbed) + 2 * partition.length
    let last = bytes << 24
    if ((partition.length & 1) === 1) last |= partition.charCodeAt(partition.length - 1)
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
}

function randomSecret(): [number, number] {
  const words = getRandomValues(new Int32Array(2))
  return [words[0] as number, words[1] as number]
}
