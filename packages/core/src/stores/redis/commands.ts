/**
 * What the store needs of a Redis client. Keys go in as the store names them; a prefix that the client is set to add is
 * added by the client. When the connection is lost before the reply, a call rejects and is not sent again.
 *
 * What may still be sent again is a call that Redis answered with an error: by a cluster's client after MOVED, ASK,
 * TRYAGAIN or CLUSTERDOWN, when it was not run, and by ioredis when the app's `reconnectOnError` yields 2. And a client
 * of ioredis whose own methods the app has replaced may resend after a loss; only a call's time limit helps there.
 */
export interface RedisCommands {
  readonly isCluster: boolean
  /**
   * Whether a command for this key would be written to a connection at once, and not queued by the client. Cheap: asked
   * for every call. In a cluster a node that the client connects to for the first time counts as ready for a second,
   * since clients do that only when there is a command for it.
   */
  isReady(key: string): boolean
  /**
   * Whether the client has a connection or is after one: a client of node-redis is not before the app has connected it, and none
   * is that the app has closed, or that has given up.
   */
  isOpen(): boolean
  /**
   * EVALSHA; at least one key. Rejects with the client's error; `message` begins with Redis' error
   * code (NOSCRIPT …) when it was Redis that refused. Numbers in the reply may be texts: the app can set its client so.
   */
  evalsha(sha: string, keys: readonly string[], args: readonly string[]): Promise<unknown>
  /** EVAL; at least one key. Rejects as `evalsha` does. */
  eval(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>
  /** DEL; at least one key, all of one slot. */
  del(keys: readonly string[]): Promise<unknown>
  /** Calls back whenever the client (any node of a cluster) becomes ready; yields the function that stops it. */
  onReady(listener: () => void): () => void
  /** Names the node that serves the key by its address, for a circuit breaker a node and for messages; "" when none is known. Cheap. */
  nodeOf(key: string): string
  /**
   * After READONLY: makes the client look for its primary anew, where it can without harm to the app's own commands.
   * Does nothing where it cannot, and in a cluster, whose nodes say MOVED instead.
   */
  reconnect(key: string): void
}

/** The address options of a client, as its library keeps them. */
export interface ServerAddress {
  readonly host?: unknown
  readonly port?: unknown
  readonly path?: unknown
}

/** Returns the server's address for messages: host and port, or a Unix socket. Fills in the defaults of the libraries. */
export function addressOf({ host, port, path }: ServerAddress): string {
  return String(path || `${host || "localhost"}:${port || 6379}`)
}
