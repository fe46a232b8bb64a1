/** Longest text of an address: an IPv6 address that ends in an IPv4 address. */
const LONGEST = 45

/**
 * True if the text between two positions looks like an IPv4 or IPv6 address. It is enough to recognize a line of
 * another format, whose first word is a host or a time. The core parses the address.
 */
export function isAddress(text: string, from: number, to: number): boolean {
  let dots = 0
  let colons = 0
  if (to - from < 2 || to - from > LONGEST) return false
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    if (code === 46) dots++
    else if (code === 58) colons++
    else if (code < 48 || code > 57) {
      const lower = code | 32
      if (lower < 97 || lower > 102) return false
      // A letter is only valid in an IPv6 address, which then has colons.
      dots += 8
    }
  }
  return colons === 0 ? dots === 3 : colons >= 2
}

/** True if the text says that there is no address: "-", or nginx's "unix:" for a Unix socket. */
export function isNoAddress(text: string): boolean {
  return text === "-" || text === "unix:" || text === ""
}

/** Returns the address in "192.0.2.1:443", "[2001:db8::1]:443", or an address without a port. */
export function withoutPort(text: string): string {
  if (text.startsWith("[")) {
    const end = text.indexOf("]")
    return end === -1 ? text : text.slice(1, end)
  }
  const colon = text.indexOf(":")
  return colon !== -1 && colon === text.lastIndexOf(":") ? text.slice(0, colon) : text
}
