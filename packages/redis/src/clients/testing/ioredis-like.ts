import { EventEmitter } from "node:events"
import type { IoredisClusterLike, IoredisCommand, IoredisLike } from "../ioredis.ts"

/** The members that ioredis' Redis and Cluster have in common. The test sets the state and reads the recorded calls. */
class Client extends EventEmitter {
  status = "wait"
  /** Number of attempts to connect, each of which fails. */
  connects = 0
  readonly calls: string[][] = []
  readonly sent: IoredisCommand[] = []

  connect(): Promise<unknown> {
    this.connects++
    this.status = "connecting"
    return Promise.reject(new Error("refused"))
  }

  sendCommand(command: IoredisCommand): unknown {
    this.sent.push(command)
    return command.promise
  }

  call(...words: string[]): Promise<unknown> {
    this.calls.push(words)
    return Promise.resolve("called")
  }

  evalsha(..._args: unknown[]): unknown {
    throw new Error("no command is made here")
  }
}

/** A fake of ioredis' client of one server, or of one cluster node. */
export class LikeRedis extends Client implements IoredisLike {
  readonly options: IoredisLike["options"]
  /** The argument of each call to `disconnect`, which is true to reconnect. */
  readonly disconnects: unknown[] = []

  constructor(options: IoredisLike["options"] = {}) {
    super()
    this.options = options
  }

  disconnect(reconnect?: boolean): void {
    this.disconnects.push(reconnect)
  }
}

/** A fake of ioredis' client of a cluster. */
export class LikeCluster extends Client implements IoredisClusterLike {
  readonly options: IoredisClusterLike["options"]
  readonly slots: string[][] = []
  readonly primaries: LikeRedis[] = []
  readonly replicas: LikeRedis[] = []
  /** Number of calls to `nodes`, and of calls to `refreshSlotsCache`. */
  lists = 0
  refreshes = 0

  constructor(keyPrefix?: unknown) {
    super()
    this.options = { keyPrefix }
  }

  nodes(role: "all" | "master"): readonly LikeRedis[] {
    this.lists++
    if (role !== "master" && role !== "all") throw new Error(`Invalid role "${role}"`)
    return role === "master" ? [...this.primaries] : [...this.primaries, ...this.replicas]
  }

  refreshSlotsCache(): void {
    this.refreshes++
  }
}
