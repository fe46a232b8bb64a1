import { isIPv6 } from "node:net"

/** An IP address by its bits: two groups of 16 for IPv4, eight for IPv6. */
export interface Address {
  /** The one spelling of it: dotted decimal, or IPv6 as RFC 5952 section 4 writes it, without a zone. */
  readonly text: string
  readonly groups: readonly number[]
}

/** The addresses whose first `prefix` bits are those of `groups`. A single address has all of its 32 or 128 bits. */
export interface AddressRange {
  readonly text: string
  readonly groups: readonly number[]
  readonly prefix: number
}

/** What `parseAddressRange` accepts, for error messages. */
export const ADDRESS_RANGE_ACCEPTED =
  'an IP address or a CIDR, such as "192.0.2.7", "10.0.0.0/8" or "2001:db8::/32"'

const MAPPED = "::ffff:"
/** The longest IPv6 address is 45 characters, with a dotted tail; a zone is the name of a network interface. */
const LONGEST_ADDRESS = 45
const LONGEST_ZONE = 64

/**
 * The address in its one spelling, undefined for what is no address.
 *
 * IPv4 is four decimal parts and nothing else: "127.1", "0x7f.0.0.1" and "010.0.0.1" mean different addresses to
 * different readers, so they mean none here. IPv4-mapped IPv6 (::ffff:0:0/96, RFC 4291 section 2.5.5.2), however it is
 * spelt, is the IPv4 address that it carries; "::192.0.2.1" and "64:ff9b::192.0.2.1" only end in dotted notation and
 * stay IPv6.
 */
export function canonicalAddress(text: string): string | undefined {
  // What a socket nearly always reports: plain IPv4, or the mapped form on a socket that listens for both families.
  if (readIPv4(text, 0) >= 0) return text
  if (text.startsWith(MAPPED) && readIPv4(text, MAPPED.length) >= 0) return text.slice(MAPPED.length)
  return parseAddress(text)?.text
}

/** The address with its bits; the same spellings as `canonicalAddress`. */
export function parseAddress(text: string): Address | undefined {
  const bits = readIPv4(text, 0)
  if (bits >= 0) return { text, groups: [bits >>> 16, bits & 0xffff] }
  return text.length <= LONGEST_ADDRESS + 1 + LONGEST_ZONE ? parseIPv6(text) : undefined
}

/**
 * The range of "10.0.0.0/8", or of a single address; undefined for anything else. Bits after the prefix do not count.
 * A range within ::ffff:0:0/96 is the IPv4 range that it carries, because so are the addresses.
 */
export function parseAddressRange(text: string): AddressRange | undefined {
  const slash = text.indexOf("/")
  const written = slash === -1 ? text : text.slice(0, slash)
  const address = parseAddress(written)
  if (address === undefined) return undefined
  const width = address.groups.length * 16
  if (slash === -1) return { text: address.text, groups: address.groups, prefix: width }
  const digits = text.slice(slash + 1)
  if (!/^(?:0|[1-9]\d{0,2})$/.test(digits)) return undefined
  // A mapped address was unwrapped, and the 96 bits before it are in the prefix as it is written.
  const mapped = width === 32 && written.includes(":")
  const prefix = Number(digits) - (mapped ? 96 : 0)
  if (prefix < 0 || prefix > width) return undefined
  return { text: `${address.text}/${prefix}`, groups: address.groups, prefix }
}

/** Whether an address is in any of the ranges. IPv4 is never in a range of IPv6 nor the other way round. */
export function compileAddressRanges(ranges: readonly AddressRange[]): (address: string) => boolean {
  // Lists of single addresses grow long, and a set does not care.
  const single = new Set<string>()
  const wide: AddressRange[] = []
  for (const range of ranges) {
    if (range.prefix === range.groups.length * 16) single.add(range.text.replace(/\/.*/, ""))
    else wide.push(range)
  }
  const within = remember((text) => {
    const address = parseAddress(text)
    if (address === undefined) return undefined
    return single.has(address.text) || wide.some((range) => contains(range, address))
  })
  return (address) => within(address) ?? false
}

/**
 * The group that an address is counted in: IPv4 by itself, IPv6 by its first `ipv6Prefix` bits, as "2001:db8:1:2::/64".
 * One subscriber has a whole /64 or more, so a single IPv6 address identifies nobody. Takes canonical addresses only.
 */
export function compileAddressGroup(ipv6Prefix: number): (address: string) => string {
  const group = remember((text) => {
    const { groups } = parseAddress(text) as Address
    const masked = groups.map((bits, index) => bits & mask(ipv6Prefix - index * 16))
    return `${serializeIPv6(masked.map((bits) => bits.toString(16)).join(":"))}/${ipv6Prefix}`
  })
  return (address) => (address.includes(":") ? (group(address) as string) : address)
}

/**
 * `compute` with its last results at hand. When `max` of them are known all are forgotten: that costs a recomputation
 * now and then, and no bookkeeping on a hit. What yields undefined is not kept, so rubbish pushes nothing out.
 */
export function remember<T>(
  compute: (text: string) => T | undefined,
  max = 4096,
): (text: string) => T | undefined {
  const known = new Map<string, T>()
  return (text) => {
    const hit = known.get(text)
    if (hit !== undefined) return hit
    const value = compute(text)
    if (value === undefined) return undefined
    if (known.size >= max) known.clear()
    // A copy, because a text that was cut out of a header keeps the whole header in memory.
    known.set(Buffer.from(text).toString(), value)
    return value
  }
}

const parseIPv6 = remember((text): Address | undefined => {
  const zone = text.indexOf("%")
  const written = zone === -1 ? text : text.slice(0, zone)
  if (zone === text.length - 1 || !isIPv6(written)) return undefined
  const canonical = serializeIPv6(written)
  const groups = groupsOf(canonical)
  const [high, low] = groups.slice(6) as [number, number]
  if (groups[5] === 0xffff && groups.slice(0, 5).every((bits) => bits === 0)) {
    return { text: `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`, groups: [high, low] }
  }
  return { text: canonical, groups }
})

/** Returns an IPv6 address as RFC 5952 section 4 writes it, which is how the URL standard writes a host. */
function serializeIPv6(ipv6: string): string {
  return new URL(`http://[${ipv6}]`).hostname.slice(1, -1)
}

/** Returns the eight groups of an address that `serializeIPv6` has written, which has no dotted tail. */
function groupsOf(ipv6: string): number[] {
  const [before = [], after = []] = ipv6
    .split("::")
    .map((part) => (part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16))))
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

function contains(range: AddressRange, { groups }: Address): boolean {
  if (groups.length !== range.groups.length) return false
  return groups.every((bits, index) => {
    return ((bits ^ (range.groups[index] as number)) & mask(range.prefix - index * 16)) === 0
  })
}

/** A group of 16 bits of which the first `ones` are set; all for 16 and more, none for 0 and less. */
function mask(ones: number): number {
  return 0xffff & ~(0xffff >> Math.max(0, Math.min(16, ones)))
}

/** The 32 bits, as a number of 0 and up, of four decimal parts that begin at `from`; -1 for anything else. */
function readIPv4(text: string, from: number): number {
  let bits = 0
  let dots = 0
  let part = -1
  for (let index = from; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === 46) {
      if (part === -1 || dots === 3) return -1
      bits = bits * 256 + part
      dots += 1
      part = -1
    } else {
      // A part that began with 0 is 0: more digits would be octal to some.
      if (code < 48 || code > 57 || part === 0) return -1
      part = part === -1 ? code - 48 : part * 10 + code - 48
      if (part > 255) return -1
    }
  }
  return dots === 3 && part !== -1 ? bits * 256 + part : -1
}
