import { canonicalAddress, compileAddressTable } from "../ground/address.ts"
import { InvalidOptionError } from "../ground/errors.ts"
import {
  type ClientAddressOptions,
  clientAddressProblems,
  proxyRanges,
  trustsNobody,
} from "./client-address-options.ts"
import { addressOfNode, type ForwardedHeader, visitForwarded } from "./forwarded.ts"
import type { ClientAddressReader, HeaderFields, RequestFacts } from "./request.ts"

/** Whether the address at a hop is a trusted proxy. `nearer` is the proxy that has reported the address. */
type Trust = (address: string | undefined, hop: number, nearer?: string) => boolean

/**
 * Returns a function that reads the client's address. The client is the socket's peer. If the peer is a trusted proxy,
 * the client is an entry of the list that the peer reports.
 *
 * - With addresses, it is the right-most entry that is not a trusted proxy. If all are trusted, it is the left-most. The
 *   networks of a content delivery network are crossed once: what it reports is the client, even in its own networks.
 *   Clients of its VPN have addresses there, and could otherwise choose any address.
 * - With n hops, it is the n-th entry from the right. The socket is the first hop, so 1 means the last entry and 2 the
 *   entry before it. If the list is shorter, it is the left-most entry.
 *
 * The list is X-Forwarded-For, or Forwarded (RFC 7239) if there is no X-Forwarded-For. Proxies that only
 * know X-Forwarded-For pass on the Forwarded header that the client wrote. If the proxies only know
 * Forwarded, use `clientIpHeader: "forwarded"`. An invalid entry ends the walk. The client is then the last
 * valid address, which is the proxy that reported the invalid entry. A `clientIpHeader` that is absent,
 * repeated or invalid leaves the socket's peer.
 *
 * A peer without an address (a Unix socket) counts as a trusted hop, but is never trusted by address.
 *
 * If `trustedProxies` is not set and a forwarding header arrives, `onForwardedIgnored` is called once with its name.
 * The returned function does not throw.
 * @throws {@link InvalidOptionError}
 */
export function compileClientAddress(
  options: ClientAddressOptions,
  onForwardedIgnored: OnForwardedIgnored,
): ClientAddressReader {
  const problems = clientAddressProblems(options)
  if (problems.length > 0) throw new InvalidOptionError(problems)
  const { trustedProxies } = options
  if (trustsNobody(trustedProxies)) return compilePeer(trustedProxies === undefined, onForwardedIgnored)
  const trusts = typeof trustedProxies === "number" ? withinHops(trustedProxies) : fromRanges(trustedProxies)
  const header = options.clientIpHeader?.toLowerCase()
  const pinned = isForwardedHeader(header) ? header : undefined
  const reported = pinned === undefined ? header : undefined
  return ({ remoteAddress, headers }) => {
    const peer = peerAddress(remoteAddress)
    if (!trusts(peer, 1)) return peer
    if (reported !== undefined) return singleAddress(headers, reported) ?? peer
    const name = pinned ?? forwardedHeader(headers)
    return walk(name, headers?.[name], peer, trusts)
  }
}

type OnForwardedIgnored = (headerName: ForwardedHeader, facts: RequestFacts) => void

function compilePeer(warns: boolean, onForwardedIgnored: OnForwardedIgnored): ClientAddressReader {
  let watching = warns
  return (facts) => {
    const { remoteAddress } = facts
    if (watching) {
      const { headers } = facts
      const name = forwardedHeader(headers)
      if (headers?.[name] !== undefined) {
        watching = false
        onForwardedIgnored(name, facts)
      }
    }
    return peerAddress(remoteAddress)
  }
}

function withinHops(hops: number): Trust {
  return (_address, hop) => hop <= hops
}

function fromRanges(proxies: readonly string[]): Trust {
  const networkOf = compileAddressTable(proxyRanges(proxies))
  return (address, _hop, nearer) => {
    const network = address === undefined ? undefined : networkOf(address)
    if (network === undefined || network === "" || nearer === undefined) return network !== undefined
    return network !== networkOf(nearer)
  }
}

function walk(
  name: ForwardedHeader,
  field: unknown,
  peer: string | undefined,
  trusts: Trust,
): string | undefined {
  let client = peer
  let hop = 1
  visitForwarded(name, field, (address) => {
    const nearer = client
    client = address
    hop += 1
    return trusts(address, hop, nearer)
  })
  return client
}

function peerAddress(remoteAddress: unknown): string | undefined {
  return typeof remoteAddress === "string" ? canonicalAddress(remoteAddress) : undefined
}

function singleAddress(headers: HeaderFields | undefined, name: string): string | undefined {
  const field: unknown = headers?.[name]
  const value: unknown = Array.isArray(field) && field.length === 1 ? field[0] : field
  return typeof value === "string" ? addressOfNode(value.trim()) : undefined
}

/** Returns the name of the list to read if none is pinned. The request may have neither list. */
function forwardedHeader(headers: HeaderFields | undefined): ForwardedHeader {
  return headers?.["x-forwarded-for"] === undefined ? "forwarded" : "x-forwarded-for"
}

function isForwardedHeader(name: string | undefined): name is ForwardedHeader {
  return name === "x-forwarded-for" || name === "forwarded"
}
