/** What both doors prove who they are with, as PEM. */
export interface Tls {
  readonly cert: Buffer
  readonly key: Buffer
  /** Who is to have signed the certificates of callers. Undefined: callers need none. */
  readonly clientCa: Buffer | undefined
}
