import { addressOf, type RedisCommands, type ServerAddress } from "../commands.ts"

/** The members of the clients and clusters of node-redis 5 and 6 that are used. */
export interface NodeRedisCalls {
  readonly isOpen: boolean
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  del(keys: string[]): Promise<unknown>
}

/** A node-redis client of one server. */
export interface NodeRedisLike extends NodeRedisCalls {
  readonly isReady: boolean
  /** Number of connections so far. */
  readonly socketEpoch?: number
  readonly options?:
    | { readonly socket?: (ServerAddress & { readonly reconnectStrategy?: unknown }) | undefined }
    | undefined
  sendCommand?(args: string[]): Promise<unknown>
  listenerCount?(event: "error"): number
}

/** Shortest time between two reconnects, and the longest that calls are held back for one. */
const RECONNECT_EVERY_MS = 1_000

/**
 * Returns the commands of a node-redis client. The app connects the client and listens to its errors. Without a
 * listener, node-redis throws its errors, so a listener added here would hide them from the app.
 *
 * When the connection is lost, node-redis rejects the commands that it has written, and keeps the others. So it never
 * sends a command twice by itself.
 */
export function nodeRedisCommands(client: NodeRedisLike): RedisCommands {
  const { options } = client
  const address = options === undefined ? "" : addressOf(options.socket ?? {})
  let leftEpoch: number | undefined
  let leftAtMs = Number.NEGATIVE_INFINITY
  const mayLeave = () => performance.now() - leftAtMs >= RECONNECT_EVERY_MS
  return {
    isCluster: false,
    // The server closes the old connection, so it would not run a call that is sent there now.
    isReady: () => client.isReady && (client.socketEpoch !== leftEpoch || mayLeave()),
    isOpen: () => client.isOpen,
    ...callsOf(client),
    nodeOf: () => address,
    // The client's own methods that reconnect reject all commands in flight. After QUIT, which needs no permission, the
    // server first responds to the earlier commands and then closes the connection. The client takes this for a lost
    // connection and reconnects. Without a listener for its errors, that would end the process.
    reconnect() {
      const comesBack = options?.socket?.reconnectStrategy !== false && client.listenerCount?.("error")
      if (!comesBack || !client.isReady || !mayLeave()) return
      leftEpoch = client.socketEpoch
      leftAtMs = performance.now()
      client.sendCommand?.(["QUIT"]).catch(() => undefined)
    },
  }
}

/** A further method of these clients. Its own types are too complex to repeat here. */
interface Typed {
  withTypeMapping?(mapping: object): NodeRedisCalls
}

/**
 * Returns the calls on a client or a cluster. They use the client's methods, because `sendCommand` ignores the
 * `keyPrefix` of node-redis 6. They return strings and numbers, even if the app has configured its client to return
 * others, such as Buffers.
 */
export function callsOf(client: NodeRedisCalls): Pick<RedisCommands, "evalsha" | "eval" | "del"> {
  // node-redis only reads the lists, but its types do not declare that.
  const plain = (client as NodeRedisCalls & Typed).withTypeMapping?.({}) ?? client
  return {
    evalsha: (sha, keys, args) => plain.evalSha(sha, { keys: keys as string[], arguments: args as string[] }),
    eval: (script, keys, args) => plain.eval(script, { keys: keys as string[], arguments: args as string[] }),
    del: (keys) => plain.del(keys as string[]),
  }
}
