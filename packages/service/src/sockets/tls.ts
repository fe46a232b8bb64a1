import type { TlsOptions } from "node:tls"

/** The certificate and key of both servers, as PEM. */
export interface Tls {
  /** The certificate, followed by its intermediate certificates. */
  readonly cert: Buffer
  /** Its private key. */
  readonly key: Buffer
  /** The authority that must have signed the certificates of callers. If undefined, callers need no certificate. */
  readonly clientCa: Buffer | undefined
}

/**
 * Disables Node's handshake timeout. The arrival timeout includes the handshake and closes late connections, so no
 * separate timeout is needed.
 */
const NO_TIMEOUT_MS = 2 ** 31 - 1

/**
 * Returns the options of a TLS server. If an authority for callers is given, callers without a certificate from this
 * authority are refused.
 */
export function tlsOptions({ cert, key, clientCa }: Tls): TlsOptions {
  const pair = { cert, key, handshakeTimeout: NO_TIMEOUT_MS }
  return clientCa === undefined
    ? pair
    : { ...pair, ca: clientCa, requestCert: true, rejectUnauthorized: true }
}
