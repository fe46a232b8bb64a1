import { addressOf, type RedisCommands, type ServerAddress } from "../commands.ts"

/** The members of node-redis 5 and 6's clients and clusters that the store uses. */
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

/** Shortest time between two reconnects, and the longest time that calls wait for a reconnect. */
const RECONNECT_EVERY_MS = 1_000

/**
 * Returns the commands of a node-redis client. The app must connect the client and handle its errors. The store adds
 * no error listener: node-redis throws errors without a listener, and a listener added here would hide them from the
 * app.
 *
 * When the connection is lost, node-redis rejects the commands that it has written, and keeps only the other commands
 * in its queue. So node-redis never sends a command twice.
 */
export function nodeRedisCommands(client: NodeRedisLike): RedisCommands {
  const { options } = client
  const address = options === undefined ? "" : addressOf(options.socket ?? {})
  let leftEpoch: number | undefined
  let leftAtMs = Number.NEGATIVE_INFINITY
  const mayLeave = () => performance.now() - leftAtMs >= RECONNECT_EVERY_MS
  return {
    isCluster: false,
    // After QUIT, the server closes the old connection, so it would not run a call that is sent on that connection.
    isReady: () => client.isReady && (client.socketEpoch !== leftEpoch || mayLeave()),
    isOpen: () => client.isOpen,
    ...callsOf(client),
    nodeOf: () => address,
    // Send QUIT, because the client's own methods for reconnecting reject all commands in flight. After QUIT, which
    // needs no permission, the server first responds to the earlier commands and then closes the connection. The
    // client reconnects as after a lost connection. If the client had no error listener, this would end the process.
    reconnect() {
      const comesBack = options?.socket?.reconnectStrategy !== false && client.listenerCount?.("error")
      if (!comesBack || !client.isReady || !mayLeave()) return
      leftEpoch = client.socketEpoch
      leftAtMs = performance.now()
      client.sendCommand?.(["QUIT"]).catch(() => undefined)
    },
  }
}

/** Another method of these clients, with a simplified type because the full type is too complex to repeat here. */
interface Typed {
  withTypeMapping?(mapping: object): NodeRedisCalls
}

/**
 * Returns functions that call commands of a client or a cluster. These functions use the client's methods, because
 * `sendCommand` ignores the `keyPrefix` of node-redis 6. They return strings and numbers, even if the app has
 * configured its client to return other types, such as Buffers.
 */
export function callsOf(client: NodeRedisCalls): Pick<RedisCommands, "evalsha" | "eval" | "del"> {
  // The casts are safe, because node-redis only reads the arrays. Its types do not declare them as read-only.
  const plain = (client as NodeRedisCalls & Typed).withTypeMapping?.({}) ?? client
  return {
    evalsha: (sha, keys, args) => plain.evalSha(sha, { keys: keys as string[], arguments: args as string[] }),
    eval: (script, keys, args) => plain.eval(script, { keys: keys as string[], arguments: args as string[] }),
    del: (keys) => plain.del(keys as string[]),
  }
}
