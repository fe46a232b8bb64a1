/** Where a client was told that its server is, as its library keeps it. */
export interface Place {
  readonly host?: unknown
  readonly port?: unknown
  readonly path?: unknown
}

/** A text for who reads of it: a host and a port, or a Unix socket. What was not said is what libraries take for it. */
export function addressOf({ host, port, path }: Place): string {
  return String(path || `${host || "localhost"}:${port || 6379}`)
}
