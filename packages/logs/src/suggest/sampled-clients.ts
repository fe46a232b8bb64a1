import { randomInt } from "node:crypto"
import { roomFor } from "../replay/typed-arrays.ts"
import { clientHash } from "./client-hash.ts"
import { type LargeClient, LargestClients } from "./largest-clients.ts"

const MOST_LARGE = 1_000
/** The number of bits of a hash. */
const MOST_BITS = 32

/**
 * Numbers clients from 0 and counts their requests. The table contains all clients while there are at most `most`.
 * Whenever the table is full, k grows by 1, and clients are removed unless their hash ends in k zero bits. The sample
 * consists of clients and not of requests, so all requests of a sampled client are counted. The 1,000 largest clients
 * are never removed. With three windows, an IPv4 client takes about 130 bytes.
 */
export class SampledClients {
  readonly #seed: number
  readonly #most: number
  readonly #onForget: (client: number) => void
  readonly #numbers = new Map<string, number>()
  readonly #names: (string | undefined)[] = []
  /** Numbers that are free, because their client was removed. */
  readonly #free: number[] = []
  #requests = new Uint32Array(0)
  /** Number of zero bits at the end of a sampled client's hash. */
  #bits = 0
  #sampled = 0
  #isSampled = new Uint8Array(0)
  /** Undefined until the table has been full once. */
  #largest: LargestClients | undefined

  /**
   * `seed` determines the sample. By default, it is random. `onForget` is called with the number of each client that
   * is removed. The number may then be reused for another client.
   */
  constructor(most: number, onForget: (client: number) => void, seed: number = randomInt(2 ** 32)) {
    this.#seed = seed
    this.#most = most
    this.#onForget = onForget
  }

  /** Returns the number of the client of a request, and counts the request. */
  count(name: string): number {
    return this.countKnown(name) ?? this.#countOf(this.#add(name))
  }

  /** Counts a request of a client in the table, and returns its number; undefined if the client is not in the table. */
  countKnown(name: string): number | undefined {
    const client = this.#numbers.get(name)
    return client === undefined ? undefined : this.#countOf(client)
  }

  /** Returns the number of a client; undefined if it is not in the table. */
  find(name: string): number | undefined {
    return this.#numbers.get(name)
  }

  nameOf(client: number): string {
    return this.#names[client] as string
  }

  /** The number of clients that each sampled client represents; 1 if all clients are in the table. */
  get factor(): number {
    return 2 ** this.#bits
  }

  /** Returns the number of clients that this client represents; 0 if it is neither sampled nor large. */
  weightOf(client: number): number {
    if (this.#names[client] === undefined) return 0
    if (this.#largest?.isLarge(client) === true) return 1
    return this.#isSampled[client] === 1 ? this.factor : 0
  }

  /** The highest number of a client, plus one. */
  get end(): number {
    return this.#names.length
  }

  /** Returns the clients with the most requests, the largest first. */
  largest(most: number): readonly LargeClient[] {
    return (this.#largest ?? this.#largestOfAll(most)).list.slice(0, most)
  }

  #countOf(client: number): number {
    this.#requests[client] = (this.#requests[client] as number) + 1
    const left = this.#largest?.add(client)
    if (left !== undefined && this.#isSampled[left] !== 1) this.#forget(left)
    return client
  }

  #add(name: string): number {
    while (this.#sampled >= this.#most && this.#bits < MOST_BITS) this.#halve()
    const isSampled = this.#bits === 0 || this.#isInSample(name)
    const client = this.#free.pop() ?? this.#names.length
    // Copy the name, because it may be a part of a chunk, and would keep the whole chunk in memory.
    const own = Buffer.from(name, "utf16le").toString("utf16le")
    this.#numbers.set(own, client)
    this.#names[client] = own
    this.#isSampled = roomFor(this.#isSampled, client)
    this.#isSampled[client] = isSampled ? 1 : 0
    this.#requests = roomFor(this.#requests, client)
    this.#requests[client] = 0
    if (isSampled) this.#sampled++
    return client
  }

  #isInSample(name: string): boolean {
    return clientHash(name, this.#seed) % this.factor === 0
  }

  /** Removes about half of the sampled clients. */
  #halve(): void {
    this.#largest ??= this.#largestOfAll(MOST_LARGE)
    this.#bits++
    for (let client = 0; client < this.#names.length; client++) {
      const name = this.#names[client]
      if (name === undefined || this.#isSampled[client] !== 1 || this.#isInSample(name)) continue
      this.#isSampled[client] = 0
      this.#sampled--
      if (!this.#largest.has(client)) this.#forget(client)
    }
  }

  #forget(client: number): void {
    this.#numbers.delete(this.#names[client] as string)
    this.#names[client] = undefined
    this.#free.push(client)
    this.#onForget(client)
  }

  #largestOfAll(most: number): LargestClients {
    const found = new LargestClients(most)
    const requests = this.#requests.subarray(0, this.#names.length)
    // Sorting numbers is much faster than sorting clients.
    const least = requests.slice().sort()[Math.max(0, requests.length - most)] ?? 0
    let room = most - requests.reduce((sum, count) => sum + (count > least ? 1 : 0), 0)
    for (let client = 0; client < requests.length; client++) {
      const count = requests[client] as number
      if (count > least || (count === least && room-- > 0)) found.insert(client, count)
    }
    return found
  }
}
