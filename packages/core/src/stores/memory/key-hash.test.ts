import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type KeyHash, keyHasher } from "./key-hash.ts"

/**
 * Computes HalfSipHash-c-d byte by byte, following the description of SipHash (J.-P. Aumasson, D. J. Bernstein,
 * "SipHash: a fast short-input PRF", section 2) with 32-bit words.
 */
function halfSipHash(
  rounds: readonly [c: number, d: number],
  key: Uint8Array,
  message: Uint8Array,
  size: 4 | 8,
): Uint8Array {
  const [c, d] = rounds
  const words = new DataView(key.buffer, key.byteOffset, 8)
  const [k0, k1] = [words.getUint32(0, true), words.getUint32(4, true)]
  const v: [number, number, number, number] = [k0, k1, (k0 ^ 0x6c796765) >>> 0, (k1 ^ 0x74656462) >>> 0]
  if (size === 8) v[1] = (v[1] ^ 0xee) >>> 0

  const rotate = (word: number, by: number) => ((word << by) | (word >>> (32 - by))) >>> 0
  const sipRounds = (count: number) => {
    for (let i = 0; i < count; i++) {
      v[0] = (v[0] + v[1]) >>> 0
      v[1] = (rotate(v[1], 5) ^ v[0]) >>> 0
      v[0] = rotate(v[0], 16)
      v[2] = (v[2] + v[3]) >>> 0
      v[3] = (rotate(v[3], 8) ^ v[2]) >>> 0
      v[0] = (v[0] + v[3]) >>> 0
      v[3] = (rotate(v[3], 7) ^ v[0]) >>> 0
      v[2] = (v[2] + v[1]) >>> 0
      v[1] = (rotate(v[1], 13) ^ v[2]) >>> 0
      v[2] = rotate(v[2], 16)
    }
  }

  const padded = new Uint8Array((message.length >> 2) * 4 + 4)
  padded.set(message)
  padded[padded.length - 1] = message.length & 0xff
  for (let at = 0; at < padded.length; at += 4) {
    const word = new DataView(padded.buffer).getUint32(at, true)
    v[3] = (v[3] ^ word) >>> 0
    sipRounds(c)
    v[0] = (v[0] ^ word) >>> 0
  }

  const output = new DataView(new ArrayBuffer(size))
  v[2] = (v[2] ^ (size === 8 ? 0xee : 0xff)) >>> 0
  sipRounds(d)
  output.setUint32(0, v[1] ^ v[3], true)
  if (size === 8) {
    v[1] = (v[1] ^ 0xdd) >>> 0
    sipRounds(d)
    output.setUint32(4, v[1] ^ v[3], true)
  }
  return new Uint8Array(output.buffer)
}

/** Returns the message of a key, as described in the hasher's docstring. */
function messageOf(counter: string, partition: string): Uint8Array {
  const unitsOf = (text: string) => Array.from({ length: text.length }, (_, i) => text.charCodeAt(i))
  const padding = counter.length % 2 === 0 ? [] : [0]
  const units = [
    counter.length & 0xffff,
    counter.length >>> 16,
    ...unitsOf(counter),
    ...padding,
    ...unitsOf(partition),
  ]
  return Uint8Array.from(units.flatMap((unit) => [unit & 0xff, unit >>> 8]))
}

function hashOf(secret: readonly [number, number], counter: string, partition: string): KeyHash {
  return keyHasher(secret)(counter, partition)
}

describe("the reference implementation", () => {
  it.each([
    [0, "a9359f5b"],
    [1, "27475ab8"],
    [2, "fa62a603"],
    [3, "8afee704"],
    [4, "2a6e4689"],
    [5, "c5fab669"],
    [6, "5863fc23"],
    [7, "8bcf63c5"],
  ])("returns the published HalfSipHash-2-4 of %i bytes", (length, hex) => {
    const counting = (count: number) => Uint8Array.from({ length: count }, (_, i) => i)
    expect(Buffer.from(halfSipHash([2, 4], counting(8), counting(length), 4)).toString("hex")).toBe(hex)
  })
})

describe("the hash of a key", () => {
  const secrets = fc.tuple(fc.integer(), fc.integer())
  // Strings with UTF-16 code units of every kind, including lone surrogates and NUL.
  const unit = fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.constantFrom(0, 0x61, 0xd83d, 0xde00, 0xffff))
  const texts = fc.array(unit, { maxLength: 40 }).map((units) => String.fromCharCode(...units))

  it("matches the 64-bit HalfSipHash-1-3 of the reference implementation", () => {
    fc.assert(
      fc.property(secrets, texts, texts, (secret, counter, partition) => {
        const key = new Uint8Array(Int32Array.from(secret).buffer)
        const expected = new DataView(halfSipHash([1, 3], key, messageOf(counter, partition), 8).buffer)
        expect(hashOf(secret, counter, partition)).toEqual({
          low: expected.getUint32(0, true),
          high: expected.getUint32(4, true),
        })
      }),
      { seed: 7_001, numRuns: 1_000 },
    )
  })

  it("does not depend on earlier keys", () => {
    const hash = keyHasher([7, 8])
    const into = { low: 0, high: 0 }
    // Use more counters than fit into the cache, each of them twice in a row, and then all of them again.
    const counters = Array.from({ length: 1_100 }, (_, i) => `counter ${i}`)
    for (const counter of [...counters.flatMap((one) => [one, one]), ...counters, "", "a", ""]) {
      for (const partition of ["192.0.2.1", ""]) {
        expect(hash(counter, partition, into)).toBe(into)
        expect(into).toEqual(hashOf([7, 8], counter, partition))
      }
    }
  })

  it("depends on the length of long strings", () => {
    const secret = [1, 2] as const
    const key = new Uint8Array(Int32Array.from(secret).buffer)
    for (const length of [125, 126, 127, 128, 129, 1_000]) {
      const text = "x".repeat(length)
      const inPartition = new DataView(halfSipHash([1, 3], key, messageOf("a", text), 8).buffer)
      const inCounter = new DataView(halfSipHash([1, 3], key, messageOf(text, "a"), 8).buffer)
      expect(hashOf(secret, "a", text).low).toBe(inPartition.getUint32(0, true))
      expect(hashOf(secret, text, "a").low).toBe(inCounter.getUint32(0, true))
    }
  })

  it("is computed from a distinct message for every pair of counter and partition", () => {
    // Only the message and its length are hashed, so pairs have different hashes if their messages differ.
    const short = [
      "",
      "a",
      "b",
      "\0",
      "\u0001",
      "aa",
      "a\0",
      "\0a",
      "\0\0",
      "aaa",
      "aa\0",
      "a\0\0",
      "\0\0\0",
      "aaaa",
    ]
    const pairs = short.flatMap((counter) => short.map((partition) => [counter, partition] as const))
    const messages = pairs.map(([counter, partition]) =>
      Buffer.from(messageOf(counter, partition)).toString("hex"),
    )
    expect(new Set(messages).size).toBe(pairs.length)
    const hashes = pairs.map(([counter, partition]) => JSON.stringify(hashOf([3, 4], counter, partition)))
    expect(new Set(hashes).size).toBe(pairs.length)
  })

  it("depends on both halves of the secret", () => {
    const hashes = [hashOf([1, 2], "c", "p"), hashOf([3, 2], "c", "p"), hashOf([1, 3], "c", "p")]
    expect(new Set(hashes.map(({ low }) => low)).size).toBe(3)
    expect(new Set(hashes.map(({ high }) => high)).size).toBe(3)
  })

  it("differs in every store, because the secret is random", () => {
    const hashes = Array.from({ length: 20 }, () => {
      const { low, high } = keyHasher()("c", "p")
      return `${low}-${high}`
    })
    expect(new Set(hashes).size).toBe(20)
  })

  it("is distinct for each of 100,000 addresses, and is distributed evenly", () => {
    const hash = keyHasher([5, 6])
    const into = { low: 0, high: 0 }
    const seen = new Set<string>()
    const perSixteenth = new Array<number>(16).fill(0)
    const perSegment = new Array<number>(16).fill(0)
    for (let i = 0; i < 100_000; i++) {
      hash("ip-1m", `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, into)
      seen.add(`${into.low}-${into.high}`)
      perSixteenth[into.low >>> 28] = (perSixteenth[into.low >>> 28] as number) + 1
      perSegment[into.high >>> 28] = (perSegment[into.high >>> 28] as number) + 1
    }
    expect(seen.size).toBe(100_000)
    for (const count of [...perSixteenth, ...perSegment]) expect(Math.abs(count - 6_250)).toBeLessThan(500)
  })
})
