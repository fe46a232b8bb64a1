const VARINT = 0
const LENGTH_DELIMITED = 2
const MOST_ASCII = 0x7f
/** Bytes in UTF-8 of one of UTF-16's units, and of a tag with a length. */
const UNIT_BYTES = 3
const HEAD_BYTES = 10
/** Bytes to begin with, and the most that are kept for the next message: more than nearly every answer has. */
const FIRST_BYTES = 1024
const MOST_KEPT_BYTES = 65_536

/**
 * Writes a message in the wire format of protobuf into memory that is used again for the next one. As proto3 has it, what is 0,
 * false or empty is left out. https://protobuf.dev/programming-guides/encoding/
 */
export class WireBuffer {
  #bytes: Buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #at = 0

  /** Begins a new message. A message that was not written to its end leaves nothing behind. */
  restart(): void {
    this.#at = 0
  }

  /** Returns a copy of the message, which ends it. At most 64 KiB of memory are kept for the next one. */
  written(): Buffer {
    const written = Buffer.from(this.#bytes.subarray(0, this.#at))
    this.#at = 0
    if (this.#bytes.length > MOST_KEPT_BYTES) this.#bytes = Buffer.allocUnsafe(FIRST_BYTES)
    return written
  }

  bool(field: number, value: boolean): void {
    if (value) this.#number(field, 1)
  }

  /** A whole number from 0 to 2^53 - 1. */
  uint(field: number, value: number): void {
    if (value !== 0) this.#number(field, value)
  }

  /** The same of one that may be 0, or may not be there at all. */
  optionalUint(field: number, value: number | undefined): void {
    if (value !== undefined) this.#number(field, value)
  }

  string(field: number, value: string): void {
    if (value !== "") this.#text(field, value)
  }

  /** One of a repeated field: it may be empty. */
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

  /** Begins a message within the message; yields what `end` needs to know. */
  begin(field: number): number {
    this.#room(HEAD_BYTES)
    this.#varint(field * 8 + LENGTH_DELIMITED)
    // Most are short: one byte is left for the length.
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
