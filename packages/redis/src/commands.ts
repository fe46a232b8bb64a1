/**
 * The parts of a Redis client that the store needs. The store passes keys without the client's own prefix, which the
 * client adds if it is configured to. When the connection is lost before the reply, a call rejects and is not resent.
 *
 * A call may still be resent after Redis replied with an error. A cluster client resends a call after MOVED, ASK,
 * TRYAGAIN or CLUSTERDOWN, because the call was not run. An ioredis client resends a call if the app's
 * `reconnectOnError` returns 2. An ioredis client whose methods the app has replaced may also resend after a lost
 * connection. In that case, only the deadline in the call prevents Redis from counting it late.
 */
export interface RedisCommands {
  readonly isCluster: boolean
  /**
   * True if a call belongs to the request in which it is made, as in Cloudflare Workers. Then no other request may wait
   * for the call, and a timer ends with the request that has set it.
   */
  readonly isPerRequest?: boolean
  /**
   * True if the client would write a command for this key to a connection immediately, without queueing it. Must be
   * cheap, because the store checks this for every call, and polls it while it is false. May make the client connect
   * to the server.
   */
  isReady(key: string): boolean
  /**
   * True if the client has a connection or is trying to get one. False for a node-redis client that the app has not
   * connected yet. Also false for a client that the app has closed or that no longer tries to connect.
   */
  isOpen(): boolean
  /**
   * Sends EVALSHA, with at least one key. Rejects with the client's error. If Redis returned an error, the error's
   * `message` begins with its code (NOSCRIPT …). Numbers in the reply may be strings, depending on the client's
   * configuration.
   */
  evalsha(sha: string, keys: readonly string[], args: readonly string[]): Promise<unknown>
  /** Sends EVAL, with at least one key. Rejects in the same way as `evalsha`. */
  eval(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>
  /** Sends DEL, with at least one key. All keys must be in one slot. */
  del(keys: readonly string[]): Promise<unknown>
  /**
   * Returns the address of the node that serves the key, or "" if the address is not known. Each address has its own
   * circuit breaker, and messages contain the address. Must be cheap.
   */
  nodeOf(key: string): string
  /**
   * Makes the client look for its primary again, after a server has responded as a replica. May be called repeatedly.
   * Commands that the app has already sent still get their replies. A no-op if the client would not reconnect.
   */
  reconnect(key: string): void
}

/** The address options of a client, as its library stores them. */
export interface ServerAddress {
  readonly host?: unknown
  readonly port?: unknown
  readonly path?: unknown
}

/**
 * Returns the server's address for messages: host and port, or a Unix socket. If an option is absent, uses the default
 * value of the client libraries.
 */
export function addressOf({ host, port, path }: ServerAddress): string {
  return String(path || `${host || "localhost"}:${port || 6379}`)
}
