import { canonicalAddress, compileAddressTable } from "../ground/address.ts"
import { requireNone } from "../ground/option-checks.ts"
import { ignore } from "../ground/time.ts"
import type { WarningCode } from "../ground/warnings.ts"
import {
  type ClientAddressOptions,
  clientAddressProblems,
  proxyRanges,
  trustsNobody,
} from "./client-address-options.ts"
import { addressOfNode, type ForwardedHeader, visitForwarded } from "./forwarded.ts"
import { HeaderWatch } from "./header-watch.ts"
import type { ClientAddressReader, HeaderFields, RequestFacts } from "./request.ts"

/** True if the address at a hop is a trusted proxy. `nearer` is the proxy that has reported the address. */
type Trust = (address: string | undefined, hop: number, nearer?: string) => boolean

/**
 * Returns a function that reads the client's address. Normally, the client is the socket's peer. If the peer is a
 * trusted proxy, the client is an entry of the list that the peer sends.
 *
 * - If addresses are trusted, the client is the right-most entry that is not a trusted proxy. If all entries are
 *   trusted, the client is the left-most entry. An address that a content delivery network reports is always the
 *   client, even if it is in the network's own ranges. Otherwise clients of the provider's VPN, who have such
 *   addresses, could choose any address.
 * - If n hops are trusted, the client is the n-th entry from the right. The socket's peer is the first hop, so 1 means
 *   the last entry and 2 the entry before it. If the list has fewer entries, the client is the left-most entry.
 *
 * The list is X-Forwarded-For, or Forwarded (RFC 7239) if there is no X-Forwarded-For. X-Forwarded-For comes first,
 * because proxies that do not support Forwarded forward that header unchanged from the client. If the proxies support
 * only Forwarded, use `clientIpHeader: "forwarded"`. Reading stops at an invalid entry. The client is then the last
 * valid address, which is the proxy that reported the invalid entry. If the `clientIpHeader` is absent, repeated or
 * invalid, the client is the socket's peer.
 *
 * A peer without an address (a Unix socket) counts as a trusted hop, but is never trusted by address.
 *
 * If `trustedProxies` is not set and a forwarding header arrives that does not confirm the peer, `onForwardedIgnored`
 * is called once with the header's name. If `trustedProxies` is set, `onUnexpected` is called once if nearly all of
 * the first 100 requests from trusted peers have no valid header, or if nearly all of the first 100 requests have a
 * header but none has a trusted peer. The returned function does not throw.
 * @throws {@link InvalidOptionError}
 */
export function compileClientAddress(
  options: ClientAddressOptions,
  onForwardedIgnored: OnForwardedIgnored,
  onUnexpected: (code: WarningCode, message: string) => void = ignore,
): ClientAddressReader {
  requireNone(clientAddressProblems(options))
  const { trustedProxies } = options
  if (trustsNobody(trustedProxies)) return compilePeer(trustedProxies === undefined, onForwardedIgnored)
  const trusts = typeof trustedProxies === "number" ? withinHops(trustedProxies) : fromRanges(trustedProxies)
  const header = options.clientIpHeader?.toLowerCase()
  const pinned = isForwardedHeader(header) ? header : undefined
  const reported = pinned === undefined ? header : undefined
  const proxies = new HeaderWatch((times) =>
    onUnexpected(
      "SLUICE_FORWARDED_HEADER_MISSING",
      `trustedProxies is set, but ${times} of the first 100 requests from a trusted address had no valid header ` +
        `${header ?? "x-forwarded-for or forwarded"}. They count as the proxy, so all its clients are one, and a client that sends ` +
        "the header chooses its own address. Let the proxy set the header (nginx: proxy_set_header X-Forwarded-For " +
        "$proxy_add_x_forwarded_for;). Without a proxy, set trustedProxies to 0.",
    ),
  )
  const strangers = new HeaderWatch((times, { remoteAddress }) =>
    onUnexpected(
      "SLUICE_PROXY_NOT_TRUSTED",
      `${times} of the first 100 requests had a header from a proxy, which is ignored because none of them came from an address ` +
        `in trustedProxies. All clients behind a proxy count as one. The latest came from ${remoteAddress}. Add the addresses ` +
        "of your proxies.",
    ),
  )
  return (facts) => {
    const { remoteAddress, headers } = facts
    const peer = peerAddress(remoteAddress)
    const name = pinned ?? forwardedHeader(headers)
    if (!trusts(peer, 1)) {
      if (strangers.left > 0) strangers.see(facts, headers?.[reported ?? name] === undefined)
      return peer
    }
    strangers.left = 0
    const client =
      reported === undefined ? walk(name, headers?.[name], peer, trusts) : singleAddress(headers, reported)
    if (proxies.left > 0) proxies.see(facts, client !== undefined)
    return client ?? peer
  }
}

type OnForwardedIgnored = (headerName: ForwardedHeader, facts: RequestFacts) => void

/** After this number of requests whose header confirms the peer, later headers are no longer checked. */
const ENOUGH_CONFIRMED = 100

function compilePeer(warns: boolean, onForwardedIgnored: OnForwardedIgnored): ClientAddressReader {
  let left = warns ? ENOUGH_CONFIRMED : 0
  return (facts) => {
    const { remoteAddress } = facts
    if (left > 0) {
      const { headers } = facts
      const name = forwardedHeader(headers)
      const field = headers?.[name]
      if (field !== undefined) {
        const isConfirmed = isClient(peerAddress(remoteAddress), name, field)
        left = isConfirmed ? left - 1 : 0
        if (!isConfirmed) onForwardedIgnored(name, facts)
      }
    }
    return peerAddress(remoteAddress)
  }
}

/**
 * True if the peer is the client that the list names, as on a serverless platform: API Gateway passes the client's
 * address to the function, and libraries assign it to the socket. The left-most entry is normally the client, and the
 * right-most entry the latest proxy. Without a proxy, the right-most entry is the client, after entries that the
 * client wrote itself.
 */
function isClient(peer: string | undefined, name: ForwardedHeader, field: unknown): boolean {
  const listed: string[] = []
  visitForwarded(name, field, (address) => listed.push(address) > 0)
  if (peer === undefined || !listed.includes(peer)) return false
  networkOfProxy ??= compileAddressTable(proxyRanges(PROXIES))
  return peer === listed.at(-1) || (peer === listed[0] && networkOfProxy(peer) === undefined)
}

/** Networks from which proxies connect, but not clients. */
const PROXIES = ["loopback", "linklocal", "private", "cloudflare", "cloudfront", "fastly"]
let networkOfProxy: ReturnType<typeof compileAddressTable<string>> | undefined

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

/** Returns the client's address from a list; undefined if the list is absent, or if its last entry is invalid. */
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
  return hop === 1 ? undefined : client
}

function peerAddress(remoteAddress: unknown): string | undefined {
  return typeof remoteAddress === "string" ? canonicalAddress(remoteAddress) : undefined
}

function singleAddress(headers: HeaderFields | undefined, name: string): string | undefined {
  const field: unknown = headers?.[name]
  const value: unknown = Array.isArray(field) && field.length === 1 ? field[0] : field
  return typeof value === "string" ? addressOfNode(value.trim()) : undefined
}

/** Returns the name of the header to read if no header is configured. The request may lack this header too. */
function forwardedHeader(headers: HeaderFields | undefined): ForwardedHeader {
  return headers?.["x-forwarded-for"] === undefined ? "forwarded" : "x-forwarded-for"
}

function isForwardedHeader(name: string | undefined): name is ForwardedHeader {
  return name === "x-forwarded-for" || name === "forwarded"
}
