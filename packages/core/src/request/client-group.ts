import { canonicalAddress, compileAddressGroup } from "../ground/address.ts"
import { ignore } from "../ground/time.ts"
import { compileClientAddress } from "./client-address.ts"
import { type ClientAddressOptions, ipv6Prefixes, trustsNobody } from "./client-address-options.ts"
import type { ClientAddressReader, RequestFacts } from "./request.ts"

const groupByDefault = compileAddressGroup(...ipv6Prefixes())

/**
 * Returns the group that an address is counted in by default. An IPv4 address is its own group, even if it is mapped to
 * IPv6. An IPv6 address belongs to the group of its /64. Returns undefined for anything but an IP address.
 * @example
 * ```ts
 * import { addressGroup } from "@sluice/core/adapters"
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
 * Returns a function that reads the client's address from a request, as a limiter with these options does.
 * @throws {@link InvalidOptionError}
 */
export function clientAddressReader(
  options: ClientAddressOptions,
): (request: RequestFacts) => string | undefined {
  return compileClientAddress(options, ignore)
}

/**
 * Returns a function that reads the group in which a client is counted. `clientAddress` reads the client's address. If
 * no proxy is trusted, all requests of a connection have the same group. Then the first request computes it, and the
 * connection keeps it under a symbol of this limiter.
 */
export function compileClientGroup(
  clientAddress: ClientAddressReader,
  { trustedProxies, ipv6Prefix }: ClientAddressOptions,
): ClientAddressReader {
  const groupOf = compileAddressGroup(...ipv6Prefixes(ipv6Prefix))
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
    // A missing group is read again next time, because the socket may still receive its address.
    if (keeper[kept] !== undefined) return keeper[kept]
    const group = read(facts)
    if (canKeep(keeper)) keeper[kept] = group
    return group
  }
}

/**
 * Whether a group may be kept on the connection. Node's socket inherits `remoteAddress`. An own `remoteAddress` was set
 * by the app, which may change it for each request.
 */
function canKeep(connection: object): boolean {
  return Object.isExtensible(connection) && !Object.hasOwn(connection, "remoteAddress")
}
