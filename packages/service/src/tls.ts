/** What both doors prove who they are with, as PEM. */
export interface Tls {
  /** The certificate, with those between it and the root. */
  readonly cert: Buffer
  /** Its private key. */
  readonly key: Buffer
  /** Who is to have signed the certificates of callers. Undefined: callers need none. */
  readonly clientCa: Buffer | undefined
}
