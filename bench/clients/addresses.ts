const DOT = 46
const ZERO = 48

/**
 * The text of the client address with a number below 2^24, a new string at each call: flat and without a hash, as a
 * string is that Node has just made from a socket or a header. Different numbers have different texts, in no order.
 */
export type FreshAddress = (index: number) => string

export function freshAddresses(): FreshAddress {
  // Made in one small buffer: a table of a million texts would measure its own cache misses.
  const bytes = Buffer.alloc(16)
  bytes.write("10.", "latin1")
  return (index) => {
    // An odd factor makes each of the 2^24 numbers once.
    const host = Math.imul(index + 1, 0x9e37_79b1)
    let end = writeOctet(bytes, 3, (host >>> 16) & 255)
    bytes[end] = DOT
    end = writeOctet(bytes, end + 1, (host >>> 8) & 255)
    bytes[end] = DOT
    end = writeOctet(bytes, end + 1, host & 255)
    return bytes.toString("latin1", 0, end)
  }
}

function writeOctet(bytes: Buffer, at: number, octet: number): number {
  let end = at
  if (octet >= 100) bytes[end++] = ZERO + Math.trunc(octet / 100)
  if (octet >= 10) bytes[end++] = ZERO + (Math.trunc(octet / 10) % 10)
  bytes[end++] = ZERO + (octet % 10)
  return end
}
