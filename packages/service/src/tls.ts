import type { TlsOptions } from "node:tls"

/** What both doors prove who they are with, as PEM. */
export interface Tls {
  /** The certificate, with those between it and the root. */
  readonly cert: Buffer
  /** Its private key. */
  readonly key: Buffer
  /** Who is to have signed the certificates of callers. Undefined: callers need none. */
  readonly clientCa: Buffer | undefined
}

/** The same for a server, whose callers have so many milliseconds to shake hands. With an authority for callers, who has no certificate of it is refused. */
export function tlsOptions({ cert, key, clientCa }: Tls, handshakeTimeout: number): TlsOptions {
  const pair = { cert, key, handshakeTimeout }
  return clientCa === undefined
    ? pair
    : { ...pair, ca: clientCa, requestCert: true, rejectUnauthorized: true }
}
