import { ADDRESS_RANGE_ACCEPTED, type AddressRange, parseAddressRange, rangeKey } from "../ground/address.ts"
import type { Problem } from "../ground/errors.ts"
import { hintFor } from "../ground/hints.ts"
import { show } from "../ground/show.ts"
import { KNOWN_NETWORKS } from "./known-networks.ts"

/** Options that determine which proxies may report a client's address. */
export interface ClientAddressOptions {
  /**
   * The number of proxies in front of the app, or their addresses: IP addresses, CIDRs, "loopback", "linklocal",
   * "uniquelocal" or "private" (the same), or "cloudflare", "cloudfront" or "fastly". By default no proxy is trusted.
   * 0 or an empty list also trusts no proxy, and prevents the warning.
   */
  readonly trustedProxies?: number | readonly string[] | undefined
  /**
   * The only header from which to read the client's address. Read only if a trusted proxy sends the request. A header
   * such as "cf-connecting-ip" contains a single address. "x-forwarded-for" and "forwarded" (RFC 7239) contain lists.
   * By default, "x-forwarded-for" is read, or "forwarded" if that is absent.
   */
  readonly clientIpHeader?: string | undefined
  /**
   * The number of leading bits of an IPv6 address that identify a client, 1 to 128. Default: 64 (RFC 6177). An object
   * contains other numbers for some networks: `{ default: 64, "2001:db8::/32": 48 }`. The narrowest network applies.
   */
  readonly ipv6Prefix?: number | Readonly<Record<string, number>> | undefined
}

/** The default `ipv6Prefix`: the smallest block that a network assigns to one subscriber (RFC 6177). */
const DEFAULT_IPV6_PREFIX = 64

const PRIVATE = "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7"
const NAMED_RANGES: ReadonlyMap<unknown, string> = new Map([
  ["loopback", "127.0.0.0/8 ::1"],
  ["linklocal", "169.254.0.0/16 fe80::/10"],
  ["uniquelocal", PRIVATE],
  ["private", PRIVATE],
  ...Object.entries(KNOWN_NETWORKS).map(([name, { networks }]) => [name, networks] as const),
])
const NAMES = [...NAMED_RANGES.keys()].map((name) => `"${name}"`).join(", ")

const MOST_HOPS = 100
const PROXIES_ACCEPTED = `the number of proxies in front of the app, 0 to ${MOST_HOPS}, or a list of their addresses, CIDRs or names: ${NAMES}`

/**
 * Returns the address ranges of a list of proxies. Each range has the name of its content delivery network, or an
 * empty name. The list must be valid.
 */
export function proxyRanges(proxies: readonly string[]): [AddressRange, string][] {
  return proxies.flatMap((proxy) =>
    (NAMED_RANGES.get(proxy) ?? proxy)
      .trim()
      .split(/\s+/)
      .map((text): [AddressRange, string] => [
        parseAddressRange(text) as AddressRange,
        Object.hasOwn(KNOWN_NETWORKS, proxy) ? proxy : "",
      ]),
  )
}

/** Returns the default prefix, and the networks that have other prefixes. The option must be valid. */
export function ipv6Prefixes(
  option: ClientAddressOptions["ipv6Prefix"] = DEFAULT_IPV6_PREFIX,
): [ipv6Prefix: number, networks: [AddressRange, number][]] {
  if (typeof option === "number") return [option, []]
  const { default: others = DEFAULT_IPV6_PREFIX, ...networks } = option
  return [
    others,
    Object.entries(networks).map(([text, prefix]) => [parseAddressRange(text) as AddressRange, prefix]),
  ]
}

/**
 * Returns the problems with the options. The path of each problem is the name of the option. Accepts unchecked input.
 */
export function clientAddressProblems(
  options: {
    readonly [Name in keyof ClientAddressOptions]?: unknown
  },
): Problem[] {
  const { trustedProxies, clientIpHeader, ipv6Prefix } = options
  const problems: Problem[] = []
  if (Array.isArray(trustedProxies)) {
    for (const [index, proxy] of trustedProxies.entries()) {
      problems.push(...proxyProblems(proxy, `trustedProxies[${index}]`))
    }
  } else if (trustedProxies !== undefined && !isWholeBetween(trustedProxies, 0, MOST_HOPS)) {
    const hint = hintFor(trustedProxies, "trustedProxies", PROXIES_ACCEPTED)
    problems.push({
      path: "trustedProxies",
      message: `${show(trustedProxies)} is not a valid value for trustedProxies${hint}`,
      accepted: PROXIES_ACCEPTED,
    })
  }
  if (clientIpHeader !== undefined) problems.push(...headerProblems(clientIpHeader, trustedProxies))
  if (ipv6Prefix !== undefined) problems.push(...prefixProblems(ipv6Prefix))
  return problems
}

function prefixProblems(option: unknown): Problem[] {
  if (typeof option !== "object" || option === null || Array.isArray(option)) {
    const accepted = `${PREFIX_ACCEPTED}, or an object such as { default: 64, "2001:db8::/32": 48 }`
    return lengthProblems(option, "ipv6Prefix", 1, accepted)
  }
  const written = new Map<string, string>()
  return Object.entries(option).flatMap(([name, length]): Problem[] => {
    const path = `ipv6Prefix[${show(name)}]`
    if (name === "default") return lengthProblems(length, path, 1, PREFIX_ACCEPTED)
    const range = parseAddressRange(name)
    if (range?.groups.length !== 8) {
      const accepted = '"default", or an IPv6 network such as "2001:db8::/32"'
      return [{ path, message: `${show(name)} is not an IPv6 network`, accepted }]
    }
    const key = rangeKey(range)
    const same = written.get(key)
    written.set(key, name)
    if (same === undefined) {
      const least = Math.max(1, range.prefix)
      // Reject a prefix that is shorter than the network's, because it would group clients of the network with other
      // clients.
      return lengthProblems(length, path, least, `a whole number from ${least} to 128, within the network`)
    }
    const message = `${show(name)} is the same network as ${show(same)}`
    return [{ path, message, accepted: "each network once" }]
  })
}

const PREFIX_ACCEPTED = "a whole number from 1 to 128"

function lengthProblems(length: unknown, path: string, least: number, accepted: string): Problem[] {
  if (isWholeBetween(length, least, 128)) return []
  return [{ path, message: `${show(length)} is not a prefix length`, accepted }]
}

function proxyProblems(proxy: unknown, path: string): Problem[] {
  if (NAMED_RANGES.has(proxy)) return []
  const range = typeof proxy === "string" ? parseAddressRange(proxy) : undefined
  if (range === undefined) {
    const accepted = `${ADDRESS_RANGE_ACCEPTED}, or one of ${NAMES}`
    return [{ path, message: `${show(proxy)} is not an address`, accepted }]
  }
  if (range.prefix > 0) return []
  // Reject a range of all addresses. If every address were trusted, the left-most entry would count, which the client
  // can write itself.
  const message = `${show(proxy)} would let every client choose its own address`
  return [
    { path, message, accepted: "the number of proxies in front of the app, or the proxies' own addresses" },
  ]
}

function headerProblems(header: unknown, trustedProxies: unknown): Problem[] {
  const path = "clientIpHeader"
  if (typeof header !== "string" || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(header)) {
    const message = `${show(header)} is not the name of a header`
    return [{ path, message, accepted: 'the name of a header that a proxy sets, such as "cf-connecting-ip"' }]
  }
  if (!trustsNobody(trustedProxies)) return []
  const message = `${show(header)} is only read from a trusted proxy, and no proxy is trusted`
  return [{ path, message, accepted: "clientIpHeader together with trustedProxies" }]
}

/** True if the option trusts no proxy. */
export function trustsNobody(trustedProxies: unknown): trustedProxies is undefined | 0 | readonly [] {
  if (Array.isArray(trustedProxies)) return trustedProxies.length === 0
  return trustedProxies === undefined || trustedProxies === 0
}

function isWholeBetween(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most
}
