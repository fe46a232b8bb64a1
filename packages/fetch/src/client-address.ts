/**
 * A function that returns the peer address of a request's connection. The function returns undefined if the peer
 * has no address, for example on a Unix socket. The function must not read a header that clients can write,
 * because `trustedProxies` reads the headers of proxies.
 */
export type ClientAddress<Context> = (request: Request, context: Context) => string | undefined

/** Reads the address from the `server` that `Bun.serve` passes to its handlers. */
export const fromBun: ClientAddress<{
  /** Returns the address of the request's connection. */
  requestIP(request: Request): {
    /** An IP address. */
    readonly address: string
  } | null
}> = (request, server) => server.requestIP(request)?.address

/** Reads the address from the `info` that `Deno.serve` passes to its handler. A Unix socket has no address. */
export const fromDeno: ClientAddress<{
  /** The peer of the connection. Over TCP, its `hostname` is an IP address. */
  readonly remoteAddr: object
}> = (_request, { remoteAddr }) => (remoteAddr as { readonly hostname?: string }).hostname

/** Reads the address from the event of h3 2, on any of its servers. */
export const fromH3: ClientAddress<{
  /** The request object of h3's server. */
  readonly req: {
    /** The address of the connection's peer. */
    readonly ip?: string | undefined
  }
}> = (_request, event) => event.req.ip

/**
 * Returns no address, for servers that do not expose the connection, such as Next.js. The client's address is then
 * read only from the headers of the proxies in front of the app, so `trustedProxies` must be the number of these
 * proxies. Clients must not be able to bypass the proxies.
 */
export const fromProxies: ClientAddress<unknown> = () => undefined
