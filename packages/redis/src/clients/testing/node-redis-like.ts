import { EventEmitter } from "node:events"
import type { NodeRedisCalls, NodeRedisLike } from "../node-redis.ts"
import type { NodeRedisClusterLike } from "../node-redis-cluster.ts"

/** The members that node-redis' client and cluster have in common. Records all calls. */
class Client extends EventEmitter implements NodeRedisCalls {
  isOpen = true
  readonly asked: unknown[][] = []

  evalSha(...args: unknown[]): Promise<unknown> {
    return this.#answer("evalSha", args)
  }

  eval(...args: unknown[]): Promise<unknown> {
    return this.#answer("eval", args)
  }

  del(...args: unknown[]): Promise<unknown> {
    return this.#answer("del", args)
  }

  #answer(method: string, args: readonly unknown[]): Promise<unknown> {
    this.asked.push([method, ...args])
    return Promise.resolve(`${method} answered`)
  }
}

/** A fake of node-redis' client of one server, or of one cluster node. The test sets its state. */
export class LikeNodeRedis extends Client implements NodeRedisLike {
  isReady = false
  socketEpoch = 1

  /** Loses the connection, as QUIT may. */
  sendCommand(args: string[]): Promise<unknown> {
    this.asked.push(["sendCommand", args])
    return Promise.reject(new Error("Socket closed unexpectedly"))
  }
}

/** A fake of node-redis' cluster node. */
export interface LikeNode {
  readonly address: string
  client?: LikeNodeRedis | undefined
}

/** A fake of node-redis' client of a cluster. The test sets its state. */
export class LikeNodeRedisCluster extends Client implements NodeRedisClusterLike {
  readonly slots: { readonly master: LikeNode }[] = []
  readonly masters: LikeNode[] = []
  readonly _keyPrefix: unknown

  constructor(keyPrefix?: unknown) {
    super()
    this._keyPrefix = keyPrefix
  }
}
