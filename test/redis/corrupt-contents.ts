import fc from "fast-check"
import type { Redis } from "ioredis"
import { digits as packedDigits } from "../../packages/core/src/algorithms/packed-counts.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"

const HOUR_MS = 3_600_000
const LARGEST = Number.MAX_SAFE_INTEGER
const LIMIT = 5

/** The value of a key: a string, the fields of a hash, or a value of another type that `command` creates. */
export type Content =
  | { readonly text: string }
  | { readonly hash: Readonly<Record<string, string | undefined>> }
  | { readonly command: string }

/** Replaces the value of a key. Without `ttlMs`, the key has no TTL. */
export async function write(client: Redis, key: string, content: Content, ttlMs?: number): Promise<void> {
  await client.del(key)
  if ("text" in content) await client.set(key, content.text)
  else if ("command" in content) await client.call(content.command, key, "a")
  else {
    const fields = Object.entries(content.hash).filter(([, value]) => value !== undefined)
    await client.hset(key, ...fields.flat().map(String))
  }
  if (ttlMs !== undefined) await client.pexpire(key, ttlMs)
}

/** Generates values of a key: counters, values that are nearly counters, and values of another shape. */
export function contents(nowMs: number, policies: readonly Policy[]): fc.Arbitrary<Content> {
  const alignedMs = nowMs - (nowMs % HOUR_MS)
  const windows = fc.integer({ min: -3, max: 3 }).map((n) => alignedMs + n * HOUR_MS)
  const bucketMs = Math.min(...policies.map(({ windowMs, buckets = 1 }) => Math.ceil(windowMs / buckets)))
  const starts = fc.oneof(
    windows,
    windows,
    fc.nat(2 * 60).map((n) => nowMs - (nowMs % bucketMs) - n * bucketMs),
    fc.nat(HOUR_MS).map((ms) => nowMs - ms),
    fc.constantFrom(0, 1, nowMs, nowMs + 1, LARGEST),
  )
  const counts = fc.oneof(
    fc.nat(8),
    fc.nat(8),
    fc.constantFrom(100, 2 ** 17, 2 ** 20, 2 ** 21 - 1, 2 ** 32, 2 ** 45, LARGEST - 1, LARGEST),
  )
  const digits = fc.oneof(
    counts.map((count) => count.toFixed(0)),
    fc.constantFrom("9".repeat(17), "9".repeat(400), "-1", "", "1e3", "00"),
  )
  const some = fc.oneof({ weight: 8, arbitrary: counts.map(String) }, { weight: 1, arbitrary: digits })
  const parts = fc.oneof(
    fc.string({ unit: fc.constantFrom(..."0001123456789:;@Oo"), maxLength: 90 }).map((text) => `1${text}`),
    fc.string({ unit: fc.constantFrom(..."0012o"), maxLength: 400 }),
    fc.nat(12).map((n) => `1${"0".repeat(n)}1`),
    fc.constantFrom("", "0", "1", "9".repeat(10), `9${"o".repeat(9)}`, "1~", "2"),
  )
  const wide = fc
    .tuple(starts.map(String), some, some, fc.option(parts, { freq: 2, nil: undefined }))
    .map(([start, previous, current, text]) => {
      const value = `w:${start}:${previous}:${current}`
      return text === undefined ? value : `${value}:${text}`
    })
  // Sub-windows and logs whose numbers are mostly consistent.
  const deltas = fc.constantFrom(0, 0, 0, 0, 1, -1, LIMIT)
  const listed = fc.array(fc.nat(2), { maxLength: 70 })
  const subWindows = fc
    .tuple(starts, listed, deltas, fc.nat(LIMIT))
    .map(([start, units, delta, current]) => `w:${start}:${sumOf(units) + delta}:${current}${textOf(units)}`)
  const log = fc
    .tuple(
      starts,
      fc.array(fc.tuple(fc.nat(2 * HOUR_MS), fc.integer({ min: 1, max: 3 }))),
      fc.boolean(),
      deltas,
    )
    .map(([start, entries, isSorted, delta]) => {
      if (isSorted) entries.sort(([a], [b]) => b - a)
      const texts = entries.map(([agoMs, units]) => logTime(start - agoMs) + packedDigits(units, 1))
      const current = sumOf(entries.map(([, units]) => units)) + delta
      return `w:${start}:0:${current}${entries.length === 0 ? "" : `:1${texts.join("")}`}`
    })
  // The code of a window, with counts that use all of their bits.
  const packed = fc
    .tuple(fc.integer({ min: -2, max: 2 }), fc.nat(2 ** 21 - 1), fc.nat(2 ** 21 - 1), fc.boolean())
    .map(([ahead, previous, current, isHigh]) => {
      const code = BigInt(((alignedMs / HOUR_MS + ahead) % 2047) + 1)
      return String(code * 2n ** 42n + BigInt(previous) * 2n ** 21n + BigInt(isHigh ? 2 ** 21 - 1 : current))
    })
  const integers = fc.oneof(
    fc.maxSafeInteger().map(String),
    fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String),
  )
  const texts = fc.oneof(
    { weight: 3, arbitrary: wide },
    { weight: 2, arbitrary: subWindows },
    { weight: 2, arbitrary: log },
    { weight: 3, arbitrary: packed },
    { weight: 1, arbitrary: integers },
    { weight: 1, arbitrary: fc.string() },
  )
  const number = fc
    .tuple(
      fc.integer({ min: -3, max: 3 }),
      fc.nat(511),
      fc.nat(2 ** 17 - 1),
      fc.nat(2 ** 18 - 1),
      fc.boolean(),
    )
    .map(([ahead, length, sum, current, isSmall]) => {
      const code = BigInt(((Math.floor(nowMs / bucketMs) + ahead) % 511) + 1)
      const counted = isSmall ? [length % 60, sum % 6, current % 6] : [length, sum, current]
      const [a, b, c] = counted.map(BigInt) as [bigint, bigint, bigint]
      return String(code * 2n ** 44n + a * 2n ** 35n + b * 2n ** 18n + c)
    })
  const hashes = fc.record({
    n: fc.oneof({ weight: 5, arbitrary: number }, { weight: 1, arbitrary: fc.string() }),
    1: fc.option(parts, { nil: undefined }),
    2: fc.option(parts, { freq: 2, nil: undefined }),
  })
  const strict = fc
    .tuple(fc.integer({ min: -65, max: 3 }), listed, deltas, fc.nat(LIMIT))
    .map(([ahead, units, delta, current]) => {
      const sum = BigInt(Math.max(0, sumOf(units) + delta))
      const text = textOf(units).slice(1)
      const code = BigInt(((Math.floor(nowMs / bucketMs) + ahead) % 511) + 1)
      const n = code * 2n ** 44n + BigInt(units.length) * 2n ** 35n + sum * 2n ** 18n + BigInt(current)
      return { n: String(n), 1: text.slice(0, 63) || undefined, 2: text.slice(63) || undefined }
    })
  return fc.oneof<fc.MaybeWeightedArbitrary<Content>[]>(
    { weight: 6, arbitrary: texts.map((text) => ({ text })) },
    { weight: 2, arbitrary: hashes.map((hash) => ({ hash })) },
    { weight: 2, arbitrary: strict.map((hash) => ({ hash })) },
    { weight: 1, arbitrary: fc.constantFrom("rpush", "sadd").map((command) => ({ command })) },
  )
}

function sumOf(units: readonly number[]): number {
  return units.reduce((sum, some) => sum + some, 0)
}

function textOf(units: readonly number[]): string {
  return units.length === 0 ? "" : `:1${units.map((some) => packedDigits(some, 1)).join("")}`
}

/** Returns the time of a log entry in four digits, because the milliseconds of an hour fit in four digits. */
function logTime(ms: number): string {
  const turnMs = 64 ** 4
  return packedDigits(((ms % turnMs) + turnMs) % turnMs, 4)
}
