import { ipv4At } from "../reading/addresses.ts"
import { IPv4Numbers } from "./ipv4-numbers.ts"
import { roomFor } from "./typed-arrays.ts"

/**
 * Numbers the clients of a replay from 0, so that their counts fit into typed arrays. An IPv4 address takes about 20
 * bytes, because its text is not stored.
 */
export class ClientTable {
  readonly #addresses = new IPv4Numbers()
  readonly #numbers = new Map<string, number>()
  /** The strings of clients other than IPv4 addresses, by number. */
  readonly #names = new Map<number, string>()
  /** The IPv4 addresses, by number. */
  #addressOf = new Uint32Array(0)
  #size = 0

  /** Returns the number of a client. Adds the client if it is new. */
  numberOf(client: string): number {
    const address = ipv4At(client, 0, client.length)
    const known = address === -1 ? this.#numbers.get(client) : this.#addresses.get(address)
    if (known !== undefined) return known
    const number = this.#size++
    if (address === -1) {
      // Copy the string, because it may be a part of a chunk, and would keep the whole chunk in memory.
      const own = Buffer.from(client, "utf16le").toString("utf16le")
      this.#numbers.set(own, number)
      this.#names.set(number, own)
    } else {
      this.#addresses.set(address, number)
      this.#addressOf = roomFor(this.#addressOf, number)
      this.#addressOf[number] = address
    }
    return number
  }

  nameOf(number: number): string {
    const name = this.#names.get(number)
    if (name !== undefined) return name
    const address = this.#addressOf[number] as number
    return [address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255].join(".")
  }

  get size(): number {
    return this.#size
  }
}
