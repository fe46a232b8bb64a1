const NOTHING = Buffer.alloc(0)

/** The bytes of a message that comes in pieces. */
export class PartialMessage {
  #bytes: Buffer = NOTHING
  #length = 0

  /** The number of bytes that have come. */
  get length(): number {
    return this.#length
  }

  /** The bytes that have come. */
  get bytes(): Buffer {
    return this.#bytes.length === this.#length ? this.#bytes : this.#bytes.subarray(0, this.#length)
  }

  /** Makes room for a message of this length, and returns how many bytes of memory that took. */
  reserve(length: number): number {
    const before = this.#bytes.length
    if (length <= before) return 0
    const longer = Buffer.allocUnsafeSlow(length)
    this.#bytes.copy(longer, 0, 0, this.#length)
    this.#bytes = longer
    return length - before
  }

  /**
   * Adds a piece, and returns how many bytes of memory that took. Most messages come in one piece, which is not copied. Otherwise no
   * piece is kept by itself: a piece of one byte would take a hundred.
   */
  add(piece: Buffer): number {
    const length = this.#length + piece.length
    if (this.#bytes.length === 0) {
      this.#bytes = piece
      this.#length = length
      return length
    }
    const taken = length > this.#bytes.length ? this.reserve(2 * length) : 0
    piece.copy(this.#bytes, this.#length)
    this.#length = length
    return taken
  }

  /** Lets go of everything. A piece is a part of all that was read at once, and would keep it in memory. */
  clear(): void {
    this.#bytes = NOTHING
    this.#length = 0
  }
}
