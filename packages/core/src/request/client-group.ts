import { compileAddressGroup } from "../ground/address.ts"
import { ignore } from "../ground/time.ts"
import { compileClientAddress } from "./client-address.ts"
import { type ClientAddressOptions, ipv6Prefixes, trustsNobody } from "./client-address-options.ts"
import { addressOfNode } from "./forwarded.ts"
import type { ClientAddressReader, RequestFacts } from "./request.ts"

const groupByDefault = compileAddressGroup(...ipv6Prefixes())

/**
 * Returns the group in which a limiter counts an address by default. Use it to count clients by an address that
 * something else has found, such as Express' `req.ip`.
 *
 * An IPv4 address is its own group, even if it is mapped to IPv6. An IPv6 address belongs to the group of its /64, in
 * any spelling. A port, a zone and brackets are left out. Returns undefined if the value is not an IP address, so that
 * the field is missing.
 * @example
 * ```ts
 * import { addressGroup } from "@sluice/core"
 *
 * addressGroup("2001:db8:1:2::7") // => "2001:db8:1:2::/64"
 * addressGroup("::ffff:192.0.2.7") // => "192.0.2.7"
 * addressGroup("192.0.2.7:51234") // => "192.0.2.7"
 * ```
 */
export function addressGroup(address: string | undefined): string | undefined {
  const canonical = typeof address === "string" ? addressOfNode(address) : undefined
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
 * Returns a function that reads the group in which a client is counted. `clientAddress` reads the client's address.
 * If no proxy is trusted, all requests of a connection have the same group. In this case, the group is computed for
 * the first request, and stored on the connection under a symbol of this limiter.
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
    // If the group is missing, read it again for the next request, because the socket may have an address by then.
    if (keeper[kept] !== undefined) return keeper[kept]
    const group = read(facts)
    if (canKeep(keeper)) keeper[kept] = group
    return group
  }
}

/**
 * True if a group may be stored on the connection. Node's socket inherits `remoteAddress`. If `remoteAddress` is an
 * own property, the app has set it and may change it for each request.
 */
function canKeep(connection: object): boolean {
  return Object.isExtensible(connection) && !Object.hasOwn(connection, "remoteAddress")
}
