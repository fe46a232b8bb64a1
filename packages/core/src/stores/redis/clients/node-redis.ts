import { addressOf, type RedisCommands, type ServerAddress } from "../commands.ts"

/** What the client and the cluster of node-redis 5 and 6 have in common, so far as it is used. */
export interface NodeRedisCalls {
  readonly isOpen: boolean
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  del(keys: string[]): Promise<unknown>
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

/** A client of one server by node-redis. */
export interface NodeRedisLike extends NodeRedisCalls {
  readonly isReady: boolean
  readonly options?: { readonly socket?: ServerAddress | undefined } | undefined
}

/**
 * The port on one server by node-redis. The app connects the client, and listens to its errors: node-redis throws those
 * that nobody listens to, which a listener of ours would hide from the app.
 *
 * node-redis rejects what it had written when the connection is lost, and keeps what it had not, so it sends nothing
 * twice by itself.
 */
export function nodeRedisCommands(client: NodeRedisLike): RedisCommands {
  const { options } = client
  const address = options === undefined ? "" : addressOf(options.socket ?? {})
  return {
    isCluster: false,
    isReady: () => client.isReady,
    isOpen: () => client.isOpen,
    ...callsOf(client),
    onReady(listener) {
      const onReady = (): void => listener()
      client.on("ready", onReady)
      return () => void client.off("ready", onReady)
    },
    nodeOf: () => address,
    // It has no way to reconnect that keeps the app's commands.
    reconnect: () => undefined,
  }
}

/** What else they have, with types that are too dear to tell. */
interface Typed {
  withTypeMapping?(mapping: object): NodeRedisCalls
}

/**
 * The calls, on the client or the cluster. By the methods and not by `sendCommand`, as that alone leaves out the
 * `keyPrefix` of node-redis 6. They yield texts and numbers, whatever the app has set its client to yield, such as Buffers.
 */
export function callsOf(client: NodeRedisCalls): Pick<RedisCommands, "evalsha" | "eval" | "del"> {
  const plain = (client as NodeRedisCalls & Typed).withTypeMapping?.({}) ?? client
  return {
    evalsha: (sha, keys, args) => plain.evalSha(sha, { keys: mutable(keys), arguments: mutable(args) }),
    eval: (script, keys, args) => plain.eval(script, { keys: mutable(keys), arguments: mutable(args) }),
    del: (keys) => plain.del(mutable(keys)),
  }
}

/** node-redis only reads the list, but its types do not say so. */
function mutable(keys: readonly string[]): string[] {
  return keys as string[]
}
