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

/** Longer than any arrival time: the handshake is a part of that time, and whoever keeps it ends the connection. */
const NO_TIMEOUT_MS = 2 ** 31 - 1

/** The options of a TLS server. With an authority for callers, a caller without a certificate from it is refused. */
export function tlsOptions({ cert, key, clientCa }: Tls): TlsOptions {
  const pair = { cert, key, handshakeTimeout: NO_TIMEOUT_MS }
  return clientCa === undefined
    ? pair
    : { ...pair, ca: clientCa, requestCert: true, rejectUnauthorized: true }
}
