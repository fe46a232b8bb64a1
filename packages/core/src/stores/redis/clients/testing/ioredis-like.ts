import { EventEmitter } from "node:events"
import type { IoredisClusterLike, IoredisCommand, IoredisLike } from "../ioredis.ts"

/** What ioredis' Redis and Cluster have in common, so far as it is used: the test sets the state and reads what was asked. */
class Client extends EventEmitter {
  status = "wait"
  /** How often it was told to connect; each time it fails. */
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

/** A client of one server, or of a node of a cluster, as ioredis has it. */
export class LikeRedis extends Client implements IoredisLike {
  readonly options: IoredisLike["options"]
  /** What it was told each time that it had to disconnect: whether to connect anew. */
  readonly disconnects: unknown[] = []

  constructor(options: IoredisLike["options"] = {}) {
    super()
    this.options = options
  }

  disconnect(reconnect?: boolean): void {
    this.disconnects.push(reconnect)
  }
}

/** A client of a cluster, as ioredis has it. */
export class LikeCluster extends Client implements IoredisClusterLike {
  readonly options: IoredisClusterLike["options"]
  readonly slots: string[][] = []
  readonly primaries: LikeRedis[] = []
  readonly replicas: LikeRedis[] = []
  /** How often the list of nodes was made, and how often it asked who serves the slots. */
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
