import { inspect } from "node:util"
import { ADDRESS_RANGE_ACCEPTED, type AddressRange, parseAddressRange } from "../ground/address.ts"
import type { Problem } from "../ground/errors.ts"

/** Options that decide which proxies may report a client's address. */
export interface ClientAddressOptions {
  /**
   * The number of proxies in front of the app, or their addresses: IP addresses, CIDRs, "loopback", "linklocal" or
   * "uniquelocal". By default no proxy is trusted. 0 or an empty list also trusts none, and silences the warning.
   */
  readonly trustedProxies?: number | readonly string[] | undefined
  /**
   * The only header to read the client's address from, and only if a trusted proxy sends it. A header such as
   * "cf-connecting-ip" contains a single address. "x-forwarded-for" and "forwarded" (RFC 7239) contain lists.
   * By default the list that is present is read, "x-forwarded-for" first.
   */
  readonly clientIpHeader?: string | undefined
  /** The number of leading bits of an IPv6 address that identify a client, 1 to 128. Default: 64 (RFC 6177). */
  readonly ipv6Prefix?: number | undefined
}

/** The default `ipv6Prefix`: the smallest block that a network assigns to one subscriber (RFC 6177). */
export const DEFAULT_IPV6_PREFIX = 64

const NAMED_RANGES: ReadonlyMap<unknown, readonly string[]> = new Map([
  ["loopback", ["127.0.0.0/8", "::1"]],
  ["linklocal", ["169.254.0.0/16", "fe80::/10"]],
  ["uniquelocal", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]],
])

const MOST_HOPS = 100
const PROXIES_ACCEPTED = `the number of proxies in front of the app, 0 to ${MOST_HOPS}, or a list of their addresses, CIDRs, "loopback", "linklocal" or "uniquelocal"`

/** Returns the address ranges of a list of proxies. The list must be valid. */
export function proxyRanges(proxies: readonly string[]): AddressRange[] {
  const texts = proxies.flatMap((proxy) => NAMED_RANGES.get(proxy) ?? proxy)
  return texts.map((text) => parseAddressRange(text) as AddressRange)
}

/** Returns the problems with the options. Paths are the options' names. Accepts unchecked input. */
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
    problems.push({
      path: "trustedProxies",
      message: `${shown(trustedProxies)} is not a valid value for trustedProxies`,
      accepted: PROXIES_ACCEPTED,
    })
  }
  if (clientIpHeader !== undefined) problems.push(...headerProblems(clientIpHeader, trustedProxies))
  if (ipv6Prefix !== undefined && !isWholeBetween(ipv6Prefix, 1, 128)) {
    const message = `${shown(ipv6Prefix)} is not a prefix length`
    problems.push({ path: "ipv6Prefix", message, accepted: "a whole number from 1 to 128" })
  }
  return problems
}

function proxyProblems(proxy: unknown, path: string): Problem[] {
  if (NAMED_RANGES.has(proxy)) return []
  const range = typeof proxy === "string" ? parseAddressRange(proxy) : undefined
  if (range === undefined) {
    const accepted = `${ADDRESS_RANGE_ACCEPTED}, or "loopback", "linklocal" or "uniquelocal"`
    return [{ path, message: `${shown(proxy)} is not an address`, accepted }]
  }
  if (range.prefix > 0) return []
  // If every address were trusted, the left-most entry would win, which the client can write itself.
  const message = `${shown(proxy)} would let every client choose its own address`
  return [
    { path, message, accepted: "the number of proxies in front of the app, or the proxies' own addresses" },
  ]
}

function headerProblems(header: unknown, trustedProxies: unknown): Problem[] {
  const path = "clientIpHeader"
  if (typeof header !== "string" || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(header)) {
    const message = `${shown(header)} is not the name of a header`
    return [{ path, message, accepted: 'the name of a header that a proxy sets, such as "cf-connecting-ip"' }]
  }
  if (!trustsNobody(trustedProxies)) return []
  const message = `${shown(header)} is only read from a trusted proxy, and no proxy is trusted`
  return [{ path, message, accepted: "clientIpHeader together with trustedProxies" }]
}

/** Whether the option does not trust any proxy. */
export function trustsNobody(trustedProxies: unknown): trustedProxies is undefined | 0 | readonly [] {
  if (Array.isArray(trustedProxies)) return trustedProxies.length === 0
  return trustedProxies === undefined || trustedProxies === 0
}

function isWholeBetween(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most
}

function shown(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : inspect(value, { depth: 0 })
  return text.length > 60 ? `${text.slice(0, 60)}...` : text
}
