const VARINT = 0
const LENGTH_DELIMITED = 2
const MOST_ASCII = 0x7f
/** Maximum bytes of a UTF-16 code unit in UTF-8, and maximum bytes of a tag and its length. */
const UNIT_BYTES = 3
const HEAD_BYTES = 10
/**
 * Initial bytes of the buffer, and the maximum that is kept for the next message. Nearly every response fits into the
 * initial bytes.
 */
const FIRST_BYTES = 1024
const MOST_KEPT_BYTES = 65_536

/**
 * Writes a message in the protobuf wire format into memory that is reused for the next message. As in proto3, values
 * that are 0, false or empty are omitted. https://protobuf.dev/programming-guides/encoding/
 */
export class WireBuffer {
  #bytes: Buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #at = 0

  /** Begins a new message. Discards an unfinished message. */
  restart(): void {
    this.#at = 0
  }

  /** Ends the message and returns a copy of it. At most 64 KiB of memory are kept for the next message. */
  written(): Buffer {
    const written = Buffer.from(this.#bytes.subarray(0, this.#at))
    this.#at = 0
    if (this.#bytes.length > MOST_KEPT_BYTES) this.#bytes = Buffer.allocUnsafe(FIRST_BYTES)
    return written
  }

  bool(field: number, value: boolean): void {
    if (value) this.#number(field, 1)
  }

  /** Writes an integer from 0 to 2^53 - 1, unless it is 0. */
  uint(field: number, value: number): void {
    if (value !== 0) this.#number(field, value)
  }

  /** Writes an integer from 0 to 2^53 - 1, including 0, unless it is undefined. */
  optionalUint(field: number, value: number | undefined): void {
    if (value !== undefined) this.#number(field, value)
  }

  string(field: number, value: string): void {
    if (value !== "") this.#text(field, value)
  }

  /** Writes one element of a repeated field. The element may be empty. */
  repeatedString(field: number, value: string): void {
    this.#text(field, value)
  }

  bytes(field: number, value: Uint8Array): void {
    this.#room(HEAD_BYTES + value.length)
    const begun = this.begin(field)
    this.#bytes.set(value, this.#at)
    this.#at += value.length
    this.end(begun)
  }

  /** Begins a nested message. Returns the position to pass to `end`. */
  begin(field: number): number {
    this.#room(HEAD_BYTES)
    this.#varint(field * 8 + LENGTH_DELIMITED)
    // Reserve one byte for the length, because most nested messages are short.
    return ++this.#at
  }

  end(begun: number): void {
    const length = this.#at - begun
    if (length > MOST_ASCII) {
      let more = 1
      for (let rest = length >>> 14; rest > 0; rest >>>= 7) more++
      this.#room(more)
      this.#bytes.copyWithin(begun + more, begun, this.#at)
    }
    this.#at = begun - 1
    this.#varint(length)
    this.#at += length
  }

  #number(field: number, value: number): void {
    this.#room(2 * HEAD_BYTES)
    this.#varint(field * 8 + VARINT)
    this.#varint(value)
  }

  #text(field: number, value: string): void {
    this.#room(HEAD_BYTES + UNIT_BYTES * value.length)
    const begun = this.begin(field)
    const bytes = this.#bytes
    let at = begun
    for (let unit = 0; unit < value.length; unit++) {
      const code = value.charCodeAt(unit)
      if (code > MOST_ASCII) {
        at = begun + bytes.write(value, begun, "utf8")
        break
      }
      bytes[at++] = code
    }
    this.#at = at
    this.end(begun)
  }

  #varint(value: number): void {
    const bytes = this.#bytes
    let rest = value
    while (rest > MOST_ASCII) {
      bytes[this.#at++] = (rest % 128) + 128
      rest = Math.floor(rest / 128)
    }
    bytes[this.#at++] = rest
  }

  #room(bytes: number): void {
    const needed = this.#at + bytes
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(2 * needed)
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
