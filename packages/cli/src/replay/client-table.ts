import { IPv4Numbers } from "./ipv4-numbers.ts"
import { roomFor } from "./typed-arrays.ts"

/**
 * Numbers the clients of a replay from 0, so that their counts fit into typed arrays. An IPv4 address takes about 20
 * bytes, because its text is not kept.
 */
export class ClientTable {
  readonly #addresses = new IPv4Numbers()
  readonly #numbers = new Map<string, number>()
  /** The texts of clients other than IPv4 addresses, by number. */
  readonly #names = new Map<number, string>()
  /** The IPv4 addresses, by number. */
  #addressOf = new Uint32Array(0)
  #size = 0

  /** Returns the number of a client. Adds the client if it is new. */
  numberOf(client: string): number {
    const address = ipv4Of(client)
    const known = address === undefined ? this.#numbers.get(client) : this.#addresses.get(address)
    if (known !== undefined) return known
    const number = this.#size++
    if (address === undefined) {
      // The text may be a part of a chunk of the log. A copy lets the memory of the chunk go.
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

const DOT = 46
const ZERO = 48

/** Returns an IPv4 address as a number. Returns undefined for any other text, also for an unusual spelling of one. */
function ipv4Of(text: string): number | undefined {
  const { length } = text
  if (length < 7 || length > 15) return undefined
  let address = 0
  let part = 0
  let digits = 0
  let dots = 0
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code === DOT) {
      if (digits === 0 || ++dots > 3) return undefined
      address = address * 256 + part
      part = 0
      digits = 0
      continue
    }
    const digit = code - ZERO
    // "01" is not the usual spelling of 1.
    if (digit < 0 || digit > 9 || (digits > 0 && part === 0)) return undefined
    part = part * 10 + digit
    digits++
    if (part > 255) return undefined
  }
  return dots === 3 && digits > 0 ? address * 256 + part : undefined
}
