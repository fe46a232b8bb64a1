import { isIPv6 } from "node:net"

/** An IP address as groups of 16 bits: two for IPv4, eight for IPv6. */
export interface Address {
  /** The canonical string: dotted decimal, or IPv6 as in RFC 5952 section 4, without a zone. */
  readonly text: string
  readonly groups: readonly number[]
}

/** All addresses whose first `prefix` bits are those of `groups`. For a single address, `prefix` is 32 or 128. */
export interface AddressRange {
  readonly text: string
  readonly groups: readonly number[]
  readonly prefix: number
}

/** A description of the input that `parseAddressRange` accepts, for error messages. */
export const ADDRESS_RANGE_ACCEPTED =
  'an IP address or a CIDR, such as "192.0.2.7", "10.0.0.0/8" or "2001:db8::/32"'

const MAPPED = "::ffff:"
/**
 * An IPv6 address with a dotted tail has at most 45 characters. After the address, a zone may name a network interface.
 */
const LONGEST_ADDRESS = 45
const LONGEST_ZONE = 64

/**
 * Returns the canonical form of an address, or undefined if the string is not a valid address.
 *
 * An IPv4 address must have four decimal parts. Other forms, such as "127.1", "0x7f.0.0.1" and "010.0.0.1", are
 * rejected because parsers disagree about them. IPv4-mapped IPv6 (::ffff:0:0/96, RFC 4291 section 2.5.5.2) becomes
 * the IPv4 address that it contains, in any spelling. "::192.0.2.1" and "64:ff9b::192.0.2.1" are not mapped
 * addresses. They only end in dotted notation, so they stay IPv6.
 */
export function canonicalAddress(text: string): string | undefined {
  // Fast path: a socket nearly always reports plain IPv4, or the mapped form if it listens for both families.
  if (readIPv4(text, 0) >= 0) return text
  if (text.startsWith(MAPPED) && readIPv4(text, MAPPED.length) >= 0) return text.slice(MAPPED.length)
  return parseAddress(text)?.text
}

/**
 * Returns the address with its bits, or undefined if the string is not a valid address. Accepts the same strings as
 * `canonicalAddress`.
 */
export function parseAddress(text: string): Address | undefined {
  const bits = readIPv4(text, 0)
  if (bits >= 0) return { text, groups: [bits >>> 16, bits & 0xffff] }
  return text.length <= LONGEST_ADDRESS + 1 + LONGEST_ZONE ? parseIPv6(text) : undefined
}

/**
 * Returns the range of a CIDR such as "10.0.0.0/8" or of a single address, or undefined for anything else. The prefix
 * length of an IPv4 range may be written as a netmask: "10.0.0.0/255.0.0.0". Bits after the prefix are ignored. A
 * range within ::ffff:0:0/96 becomes an IPv4 range, because mapped addresses become IPv4 too.
 */
export function parseAddressRange(text: string): AddressRange | undefined {
  const slash = text.indexOf("/")
  const written = slash === -1 ? text : text.slice(0, slash)
  const address = parseAddress(written)
  if (address === undefined) return undefined
  const width = address.groups.length * 16
  if (slash === -1) return { text: address.text, groups: address.groups, prefix: width }
  const length = text.slice(slash + 1)
  // The mapped address has become IPv4, but the prefix in the string still includes the 96 bits before the IPv4
  // address.
  const mapped = width === 32 && written.includes(":")
  const isNetmask = length.includes(".") && written.includes(".") && !mapped
  const prefix = isNetmask ? prefixOfNetmask(length) : prefixOf(length) - (mapped ? 96 : 0)
  if (!(prefix >= 0 && prefix <= width)) return undefined
  return { text: `${address.text}/${prefix}`, groups: address.groups, prefix }
}

function prefixOf(digits: string): number {
  return /^(?:0|[1-9]\d{0,2})$/.test(digits) ? Number(digits) : Number.NaN
}

/** Returns the number of leading ones of a netmask. Returns NaN or a fraction if the netmask is not valid. */
function prefixOfNetmask(text: string): number {
  const bits = readIPv4(text, 0)
  const prefix = 32 - Math.log2(2 ** 32 - bits)
  return bits >= 0 && Number.isInteger(prefix) ? prefix : Number.NaN
}

/**
 * Compiles a table of address ranges. The compiled function returns the entry of the narrowest range that contains an
 * address, or undefined if no range contains it. A lookup takes the same time for any number of ranges. An IPv4
 * address never matches an IPv6 range, and vice versa.
 */
export function compileAddressTable<T>(
  entries: Iterable<readonly [AddressRange, T]>,
): (address: string) => T | undefined {
  // Look up single addresses separately, because their tables can be long and contain only a few of the clients.
  const single = new Map<string, T>()
  const byPrefix = new Map<number, Map<string, { readonly entry: T }>>()
  for (const [{ text, groups, prefix }, entry] of entries) {
    if (prefix === groups.length * 16) single.set(text.replace(/\/.*/, ""), entry)
    const same = byPrefix.get(prefix) ?? new Map<string, { readonly entry: T }>()
    byPrefix.set(prefix, same.set(networkOf(groups, prefix), { entry }))
  }
  const narrowestFirst = [...byPrefix].sort(([one], [other]) => other - one)
  const found = remember((text) => {
    const address = parseAddress(text)
    if (address === undefined) return undefined
    for (const [prefix, networks] of narrowestFirst) {
      const network = networks.get(networkOf(address.groups, prefix))
      if (network !== undefined) return network
    }
    return NO_ENTRY
  })
  const hasNetworks = narrowestFirst.some(([prefix]) => prefix !== 32 && prefix !== 128)
  return (address) => {
    const entry = single.get(address)
    if (entry !== undefined || (!hasNetworks && !address.includes(":"))) return entry
    return found(address)?.entry
  }
}

const NO_ENTRY: { readonly entry: undefined } = { entry: undefined }

/**
 * Returns a function that returns the group in which an address is counted. An IPv4 address is its own group. An IPv6
 * address is grouped by its first `ipv6Prefix` bits, such as "2001:db8:1:2::/64". A subscriber has a whole /64 or
 * more, so a single IPv6 address does not identify a client. Addresses in `networks` are grouped by the prefix of
 * their network. The function accepts canonical addresses only.
 */
export function compileAddressGroup(
  ipv6Prefix: number,
  networks: Iterable<readonly [AddressRange, number]> = [],
): (address: string) => string {
  const prefixIn = compileAddressTable(networks)
  const group = remember((text) => {
    const { groups } = parseAddress(text) as Address
    const prefix = prefixIn(text) ?? ipv6Prefix
    const masked = groups.map((bits, index) => bits & mask(prefix - index * 16))
    return `${serializeIPv6(masked.map((bits) => bits.toString(16)).join(":"))}/${prefix}`
  })
  return (address) => (address.includes(":") ? (group(address) as string) : address)
}

/**
 * Returns a version of `compute` that caches its results. When the cache contains `max` results, it is cleared as a
 * whole. Some results are then computed again, but a cache hit needs no bookkeeping. An undefined result is not
 * cached, so invalid input cannot evict valid results.
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
    // Copy the text, because a substring of a header would keep the whole header in memory.
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

/**
 * Returns an IPv6 address in the form of RFC 5952 section 4. Uses the URL class, because the URL standard writes a host
 * in this form.
 */
function serializeIPv6(ipv6: string): string {
  return new URL(`http://[${ipv6}]`).hostname.slice(1, -1)
}

/** Returns the eight groups of an address from `serializeIPv6`, which never has a dotted tail. */
function groupsOf(ipv6: string): number[] {
  const [before = [], after = []] = ipv6
    .split("::")
    .map((part) => (part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16))))
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** Returns the same string for all spellings of a range, which may differ in the bits after the prefix. */
export function rangeKey({ groups, prefix }: AddressRange): string {
  return `${networkOf(groups, prefix)}/${prefix}`
}

/**
 * Returns a string that the addresses of a network share. IPv4 and IPv6 have different strings, because the number of
 * groups differs.
 */
function networkOf(groups: readonly number[], prefix: number): string {
  return groups.map((bits, index) => bits & mask(prefix - index * 16)).join()
}

/** Returns 16 bits with the first `ones` set. Clamps `ones` to the range from 0 to 16. */
function mask(ones: number): number {
  return 0xffff & ~(0xffff >> Math.max(0, Math.min(16, ones)))
}

/** Returns the 32 bits of the IPv4 address that begins at `from` as a non-negative number, or -1 if it is invalid. */
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
      // Reject digits after a leading 0, because some parsers read them as octal.
      if (code < 48 || code > 57 || part === 0) return -1
      part = part === -1 ? code - 48 : part * 10 + code - 48
      if (part > 255) return -1
    }
  }
  return dots === 3 && part !== -1 ? bits * 256 + part : -1
}
