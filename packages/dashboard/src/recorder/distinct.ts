import { randomBytes } from "node:crypto"
import { ARRAY_BYTES } from "./top-keys.ts"

const REGISTERS = 1_024
/** The number of bits of a hash that choose a register. */
const INDEX_BITS = 10
/** The seed of estimates that several processes merge: the offset of FNV-1a. Everybody knows it. */
export const SHARED_SEED = 0x811c9dc5
/** The seed of estimates of this process. Clients do not know it, so they cannot choose keys for which they are wrong. */
export const OWN_SEED = randomBytes(4).readInt32LE()
/** What an estimate takes in memory. */
export const DISTINCT_BYTES = REGISTERS + ARRAY_BYTES
/** The largest value of a register. */
const MOST_RANK = 32 - INDEX_BITS + 1

/**
 * Estimates how many different keys were added, within about 3 %, in 1 kB, by the algorithm HyperLogLog (Flajolet,
 * Fusy, Gandouet and Meunier, 2007). Estimates with the same seed are merged by the maximum of each register.
 */
export class DistinctKeys {
  readonly #seed: number
  readonly #registers: Uint8Array

  constructor(seed: number, registers: Uint8Array = new Uint8Array(REGISTERS)) {
    this.#seed = seed
    this.#registers = registers
  }

  /** Reads the text of {@link toString}, with {@link SHARED_SEED}. Returns undefined if it is not such a text. */
  static parse(text: string): DistinctKeys | undefined {
    const registers = Buffer.from(text, "base64")
    const isValid = registers.length === REGISTERS && registers.every((rank) => rank <= MOST_RANK)
    return isValid ? new DistinctKeys(SHARED_SEED, registers) : undefined
  }

  add(key: string): void {
    const hash = mixed(key, this.#seed)
    const register = hash >>> (32 - INDEX_BITS)
    const rank = Math.clz32((hash << INDEX_BITS) | (1 << (INDEX_BITS - 1))) + 1
    if (rank > (this.#registers[register] as number)) this.#registers[register] = rank
  }

  /** Adds the keys of another estimate. */
  merge(other: DistinctKeys): void {
    for (const [register, rank] of other.#registers.entries()) {
      if (rank > (this.#registers[register] as number)) this.#registers[register] = rank
    }
  }

  /** Returns the estimated number of keys. */
  get size(): number {
    let sum = 0
    let empty = 0
    for (const rank of this.#registers) {
      sum += 2 ** -rank
      if (rank === 0) empty++
    }
    const raw = (0.7213 / (1 + 1.079 / REGISTERS)) * (REGISTERS ** 2 / sum)
    // While many registers are empty, their number tells more than their ranks (linear counting).
    return Math.round(raw <= 2.5 * REGISTERS && empty > 0 ? REGISTERS * Math.log(REGISTERS / empty) : raw)
  }

  toString(): string {
    return Buffer.from(this.#registers).toString("base64")
  }
}

/** Returns a 32-bit hash whose bits all depend on all bits of the key: FNV-1a with the finalizer of MurmurHash3. */
function mixed(key: string, seed: number): number {
  let hash = seed
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
