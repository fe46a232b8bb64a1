import { isIPv6 } from "node:net"

const DOT = 46
const ZERO = 48

/**
 * Returns the IPv4 address between two positions of a string as a number. Returns -1 for any other string. Also
 * returns -1 for "01.2.3.4", because parsers disagree about leading zeros.
 */
export function ipv4At(text: string, from: number, to: number): number {
  if (to - from < 7 || to - from > 15) return -1
  let address = 0
  let part = 0
  let digits = 0
  let dots = 0
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT) {
      if (digits === 0 || ++dots > 3) return -1
      address = address * 256 + part
      part = 0
      digits = 0
      continue
    }
    const digit = code - ZERO
    if (digit < 0 || digit > 9 || (digits > 0 && part === 0)) return -1
    part = part * 10 + digit
    digits++
    if (part > 255) return -1
  }
  return dots === 3 && digits > 0 ? address * 256 + part : -1
}

/** Strings that servers write if a request has no address. Servers write "unix:" or "@" for a Unix socket. */
const NO_ADDRESS: ReadonlySet<string> = new Set(["", "-", "unknown", "unix:", "@"])

/**
 * Returns the address in "192.0.2.1", "192.0.2.1:443", "2001:db8::1", "[2001:db8::1]:443" or "fe80::1%eth0", without
 * the port and the zone. Limiters ignore both. Some programs write an IPv6 address and a port without brackets. If
 * the whole string is a valid address, no port is removed. Returns undefined if the string means that the address is
 * missing. Returns null for any other string, because a limiter would count all clients with such an address as one.
 */
export function addressIn(text: string | undefined): string | undefined | null {
  if (text === undefined) return undefined
  if (ipv4At(text, 0, text.length) !== -1) return text
  const [, inBrackets] = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text) ?? []
  const whole = ipv6In(inBrackets ?? text)
  if (whole !== null || inBrackets !== undefined) return whole
  const before = text.replace(/:\d{1,5}$/, "")
  const address = ipv4At(before, 0, before.length) === -1 ? ipv6In(before) : before
  return address === null && NO_ADDRESS.has(text) ? undefined : address
}

function ipv6In(text: string): string | null {
  const zone = text.indexOf("%")
  const address = zone === -1 ? text : text.slice(0, zone)
  return zone !== text.length - 1 && isIPv6(address) ? address : null
}
