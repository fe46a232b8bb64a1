import { Lane, type LaneListener } from "./batching/batch-sender.ts"
import type { RedisCommands } from "./commands.ts"
import { Node, type Timekeeping } from "./node/node.ts"

/** One slot where there is one server. */
const ONLY = ""

/** What has keys, whose names are not asked for where there is one server. */
interface Keyed {
  readonly keys: readonly string[]
}

/** The servers behind a client and the ways to them: a lane for all, or in a cluster one a slot that is in use. */
export class Fleet {
  readonly #commands: RedisCommands
  readonly #timekeeping: Timekeeping
  readonly #listener: LaneListener
  /** By slot, and then by the patience of who asks. */
  readonly #lanes = new Map<string, (Lane | undefined)[]>()
  /** By the client's name for them. */
  readonly #nodes = new Map<string, Node>()
  readonly #stopListening: () => void

  constructor(commands: RedisCommands, timekeeping: Timekeeping, listener: LaneListener) {
    this.#commands = commands
    this.#timekeeping = timekeeping
    this.#listener = listener
    this.#stopListening = commands.onReady(() => {
      this.#eachOpenLane((lane) => lane.wake())
      for (const node of this.#nodes.values()) node.breaker.hurry()
    })
  }

  /** The server that is responsible for a key now. */
  nodeOf(key: string): Node {
    const name = this.#commands.isCluster ? this.#commands.nodeOf(key) : ONLY
    let node = this.#nodes.get(name)
    if (node === undefined) {
      this.#forgetNodes()
      node = new Node(this.#commands, this.#timekeeping, key)
      this.#nodes.set(name, node)
    }
    // Slots move: by another key it would ask another server whether this one is back.
    node.key = key
    return node
  }

  /** Those that have left the cluster, so that in years of new addresses they do not become many. */
  #forgetNodes(): void {
    for (const [name, node] of this.#nodes) {
      if (this.#commands.nodeOf(node.key) === name) continue
      node.breaker.stop()
      this.#nodes.delete(name)
    }
  }

  /**
   * The way to the server of a request for who waits so long. A call counts until the first of its requests stops waiting,
   * so those who wait more than twice as long as others do not travel with them.
   */
  laneOf(asked: Keyed, withinMs: number): Lane {
    const slot = this.#commands.isCluster ? this.slotOf(asked.keys[0] as string) : ONLY
    let lanes = this.#lanes.get(slot)
    if (lanes === undefined) {
      lanes = []
      this.#lanes.set(slot, lanes)
    }
    const patience = patienceClassOf(withinMs)
    let lane = lanes[patience]
    if (lane === undefined) {
      const key = asked.keys[0] as string
      lane = new Lane(() => this.nodeOf(key), this.#listener)
      lanes[patience] = lane
    }
    return lane
  }

  /** Servers that nobody waits for now. */
  get openBreakers(): number {
    let open = 0
    for (const { breaker } of this.#nodes.values()) if (breaker.isOpen) open++
    return open
  }

  /** How long the last replies of all servers took. */
  get recentRoundTripsMs(): readonly number[] {
    return [...this.#nodes.values()].flatMap(({ roundTrips }) => roundTrips.recent)
  }

  /** The same for keys that one call may have: of all, or in a cluster of those with one hash tag. */
  slotOf(key: string): string {
    return this.#commands.isCluster ? key.slice(0, key.indexOf("}")) : ONLY
  }

  /** Whether one call may have all the keys. */
  areTogether(asked: Keyed): boolean {
    // Stryker disable next-line ConditionalExpression,BooleanLiteral: taken in turn the one slot answers the same, and later
    if (!this.#commands.isCluster) return true
    const { keys } = asked
    const slot = this.slotOf(keys[0] as string)
    return keys.every((key) => this.slotOf(key) === slot)
  }

  /** Calls back with every lane that there is. */
  #eachOpenLane(work: (lane: Lane) => void): void {
    for (const lanes of this.#lanes.values()) for (const lane of lanes) if (lane !== undefined) work(lane)
  }

  /** Does the same for the counters of each lane, all at once. */
  eachLane<One>(
    all: readonly One[],
    keyOf: (one: One) => string,
    work: (some: readonly One[], keys: readonly string[], node: Node) => Promise<void>,
  ): readonly Promise<void>[] {
    const groups = new Map<string, { some: One[]; keys: string[] }>()
    for (const one of all) {
      const key = keyOf(one)
      const name = this.slotOf(key)
      const group = groups.get(name) ?? { some: [], keys: [] }
      group.some.push(one)
      group.keys.push(key)
      groups.set(name, group)
    }
    return [...groups.values()].map(({ some, keys }) => work(some, keys, this.nodeOf(keys[0] as string)))
  }

  /** Rejects whatever waits, and asks no server any more. */
  close(error: Error): void {
    this.#stopListening()
    this.#eachOpenLane((lane) => lane.close(error))
    for (const node of this.#nodes.values()) node.breaker.stop()
  }
}

/** Returns the same number for deadlines of which none is more than twice as long as another. */
export function patienceClassOf(withinMs: number): number {
  return 32 - Math.clz32(withinMs)
}
