const NOTHING = Buffer.alloc(0)

/** The bytes of a message that arrives in pieces. */
export class PartialMessage {
  #bytes: Buffer = NOTHING
  #length = 0

  /** Returns the number of bytes that have arrived. */
  get length(): number {
    return this.#length
  }

  /** Returns the bytes that have arrived. */
  get bytes(): Buffer {
    return this.#bytes.length === this.#length ? this.#bytes : this.#bytes.subarray(0, this.#length)
  }

  /** Reserves memory for a message of this length. Returns the number of bytes allocated. */
  reserve(length: number): number {
    const before = this.#bytes.length
    if (length <= before) return 0
    const longer = Buffer.allocUnsafeSlow(length)
    this.#bytes.copy(longer, 0, 0, this.#length)
    this.#bytes = longer
    return length - before
  }

  /**
   * Adds a piece, and returns the number of additional bytes of memory that the message takes. Most messages arrive
   * in one piece, which is not copied. Otherwise all pieces are copied into one buffer, because a separate piece of
   * one byte would take a hundred bytes.
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

  /**
   * Releases the memory. Otherwise a piece, which is a view of the buffer of a whole read, would keep that buffer in
   * memory.
   */
  clear(): void {
    this.#bytes = NOTHING
    this.#length = 0
  }
}
