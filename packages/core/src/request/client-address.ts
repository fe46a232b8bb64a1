import { canonicalAddress, compileAddressRanges } from "../ground/address.ts"
import { InvalidOptionError } from "../ground/errors.ts"
import {
  type ClientAddressOptions,
  clientAddressProblems,
  proxyRanges,
  trustsNobody,
} from "./client-address-options.ts"
import { addressOfNode, type ForwardedHeader, visitForwarded } from "./forwarded.ts"
import type { ClientAddressReader, HeaderFields } from "./request.ts"

type Trust = (address: string | undefined, hop: number) => boolean

/**
 * Compiles who is asking. The client is the socket's peer, or, when that is a trusted proxy, whom it reports:
 *
 * - with addresses, the right-most entry of the list that is not a trusted proxy's; the left-most if all are;
 * - with n hops, the n-th entry from the right. The socket is the first hop, so with 1 it is the last entry, with 2
 *   the one before. A list shorter than that yields its left-most entry.
 *
 * The list is X-Forwarded-For, else Forwarded (RFC 7239): proxies that know only the former pass the latter on as the
 * client wrote it. Where it is the other way round, `clientIpHeader: "forwarded"`. An entry that is no address ends
 * the walk: the last address, that of the proxy that reported it, is the client then. A `clientIpHeader` that is
 * absent, repeated or no address leaves the socket's peer.
 *
 * A peer without an address (a Unix socket) is trusted as a hop and never by address.
 *
 * `onForwardedIgnored` is called once, with the header's name, when one arrives and `trustedProxies` was not given.
 * The reader does not throw. Throws InvalidOptionError.
 */
export function compileClientAddress(
  options: ClientAddressOptions,
  onForwardedIgnored: (headerName: ForwardedHeader) => void,
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

function compilePeer(
  warns: boolean,
  onForwardedIgnored: (headerName: ForwardedHeader) => void,
): ClientAddressReader {
  let watching = warns
  return ({ remoteAddress, headers }) => {
    if (watching) {
      const name = forwardedHeader(headers)
      if (headers?.[name] !== undefined) {
        watching = false
        onForwardedIgnored(name)
      }
    }
    return peerAddress(remoteAddress)
  }
}

function withinHops(hops: number): Trust {
  return (_address, hop) => hop <= hops
}

function fromRanges(proxies: readonly string[]): Trust {
  const isProxy = compileAddressRanges(proxyRanges(proxies))
  return (address) => address !== undefined && isProxy(address)
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
    client = address
    hop += 1
    return trusts(address, hop)
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

/** Which of the two lists is read, where neither is pinned; neither may be there. */
function forwardedHeader(headers: HeaderFields | undefined): ForwardedHeader {
  return headers?.["x-forwarded-for"] === undefined ? "forwarded" : "x-forwarded-for"
}

function isForwardedHeader(name: string | undefined): name is ForwardedHeader {
  return name === "x-forwarded-for" || name === "forwarded"
}
