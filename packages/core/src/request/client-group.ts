import { canonicalAddress, compileAddressGroup } from "../ground/address.ts"
import { type ClientAddressOptions, DEFAULT_IPV6_PREFIX, trustsNobody } from "./client-address-options.ts"
import type { ClientAddressReader, RequestFacts } from "./request.ts"

const groupByDefault = compileAddressGroup(DEFAULT_IPV6_PREFIX)

/**
 * Returns the group that an address is counted in by default. An IPv4 address is a group by itself, also one that is mapped to IPv6. An
 * IPv6 address is in the group of its /64. Returns undefined for anything but an IP address.
 * @example
 * ```ts
 * import { addressGroup } from "@sluice/core"
 *
 * addressGroup("2001:db8:1:2::7") // => "2001:db8:1:2::/64"
 * addressGroup("::ffff:192.0.2.7") // => "192.0.2.7"
 * ```
 */
export function addressGroup(address: string): string | undefined {
  const canonical = typeof address === "string" ? canonicalAddress(address) : undefined
  return canonical === undefined ? undefined : groupByDefault(canonical)
}

/**
 * Compiles the group that a client is counted in by its address, which `clientAddress` reads. Where no proxy is believed that
 * is the same for all requests of a connection, so it is worked out for the first of them and kept on the connection, under a
 * symbol of this limiter.
 */
export function compileClientGroup(
  clientAddress: ClientAddressReader,
  { trustedProxies, ipv6Prefix }: ClientAddressOptions,
): ClientAddressReader {
  const groupOf = compileAddressGroup(ipv6Prefix ?? DEFAULT_IPV6_PREFIX)
  const read: ClientAddressReader = (facts) => {
    const address = clientAddress(facts)
    return address === undefined ? undefined : groupOf(address)
  }
  if (!trustsNobody(trustedProxies)) return read
  const kept = Symbol("sluice.client")
  return (facts: RequestFacts) => {
    const connection: unknown = facts.keepsAddress
    if (typeof connection !== "object" || connection === null) return read(facts)
    const keeper = connection as { [kept]?: string | undefined }
    // What has no address is asked again: its socket may be about to have one.
    if (keeper[kept] !== undefined) return keeper[kept]
    const group = read(facts)
    if (canKeep(keeper)) keeper[kept] = group
    return group
  }
}

/** Node's socket inherits its address. Where there is one of its own an app has put it there, which may do so for each request. */
function canKeep(connection: object): boolean {
  return Object.isExtensible(connection) && !Object.hasOwn(connection, "remoteAddress")
}
