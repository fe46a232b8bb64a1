/** Numbers the clients of a replay from 0, so that their counts fit into typed arrays. */
export class ClientTable {
  readonly #numbers = new Map<string, number>()
  readonly #names: string[] = []

  /** Returns the number of a client. Adds the client if it is new. */
  numberOf(client: string): number {
    const known = this.#numbers.get(client)
    if (known !== undefined) return known
    // The text may be a part of a chunk of the log. A copy lets the memory of the chunk go.
    const own = Buffer.from(client, "utf16le").toString("utf16le")
    this.#numbers.set(own, this.#names.length)
    return this.#names.push(own) - 1
  }

  nameOf(number: number): string {
    return this.#names[number] as string
  }

  get size(): number {
    return this.#names.length
  }
}

/** A typed array of counts that can grow. */
type Counts = Uint8Array | Uint32Array | Float32Array | Float64Array

/** Returns the array, or a copy that is long enough for the index. New counts are 0. */
export function roomFor<Array extends Counts>(counts: Array, index: number): Array {
  if (index < counts.length) return counts
  const Kind = counts.constructor as new (length: number) => Array
  const grown = new Kind(Math.max(1024, 2 ** Math.ceil(Math.log2(index + 1))))
  grown.set(counts)
  return grown
}
