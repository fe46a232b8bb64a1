const FIRST_SLOTS = 1024
/** 2^32 divided by the golden ratio. Multiplying by this number spreads neighboring addresses over the table. */
const SPREAD = 0x9e3779b1

/**
 * A map from IPv4 addresses to numbers from 0, as a hash table in typed arrays. A lookup in a `Map` of strings takes
 * three times as long.
 */
export class IPv4Numbers {
  #addresses = new Uint32Array(FIRST_SLOTS)
  /** The number of the address in each slot, plus 1. If 0, the slot is free. */
  #numbers = new Uint32Array(FIRST_SLOTS)
  #count = 0

  /** Returns the number of an address; undefined if the address has no number. */
  get(address: number): number | undefined {
    const number = this.#numbers[this.#slotOf(address)] as number
    return number === 0 ? undefined : number - 1
  }

  /** Sets the number of an address that has no number yet. */
  set(address: number, number: number): void {
    if (2 * ++this.#count > this.#numbers.length) this.#grow()
    const slot = this.#slotOf(address)
    this.#addresses[slot] = address
    this.#numbers[slot] = number + 1
  }

  /** Returns the slot of an address, or the free slot in which the address would be stored. */
  #slotOf(address: number): number {
    const mask = this.#numbers.length - 1
    const hash = Math.imul(address, SPREAD)
    let slot = (hash ^ (hash >>> 16)) & mask
    while ((this.#numbers[slot] as number) !== 0 && this.#addresses[slot] !== address)
      slot = (slot + 1) & mask
    return slot
  }

  #grow(): void {
    const [addresses, numbers] = [this.#addresses, this.#numbers]
    this.#addresses = new Uint32Array(2 * addresses.length)
    this.#numbers = new Uint32Array(2 * numbers.length)
    for (let i = 0; i < numbers.length; i++) {
      if (numbers[i] === 0) continue
      const slot = this.#slotOf(addresses[i] as number)
      this.#addresses[slot] = addresses[i] as number
      this.#numbers[slot] = numbers[i] as number
    }
  }
}
