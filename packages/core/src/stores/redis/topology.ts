import { type BatchListener, BatchSender } from "./batching/batch-sender.ts"
import type { RedisCommands } from "./commands.ts"
import { Node, type Timekeeping } from "./node/node.ts"

/** One slot where there is one server. */
const ONLY = ""

/** What has keys, whose names are not asked for where there is one server. */
interface Keyed {
  readonly keys: readonly string[]
}

/** The servers behind a client and the ways to them: a batch sender for all, or in a cluster one a slot that is in use. */
export class RedisTopology {
  readonly #commands: RedisCommands
  readonly #timekeeping: Timekeeping
  readonly #listener: BatchListener
  /** By slot, and then by the patience of who asks. */
  readonly #senders = new Map<string, (BatchSender | undefined)[]>()
  /** By the client's name for them. */
  readonly #nodes = new Map<string, Node>()
  readonly #stopListening: () => void

  constructor(commands: RedisCommands, timekeeping: Timekeeping, listener: BatchListener) {
    this.#commands = commands
    this.#timekeeping = timekeeping
    this.#listener = listener
    this.#stopListening = commands.onReady(() => {
      this.#eachOpenSender((sender) => sender.wake())
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
  senderOf(asked: Keyed, withinMs: number): BatchSender {
    const slot = this.#commands.isCluster ? this.slotOf(asked.keys[0] as string) : ONLY
    let senders = this.#senders.get(slot)
    if (senders === undefined) {
      senders = []
      this.#senders.set(slot, senders)
    }
    const patience = patienceClassOf(withinMs)
    let sender = senders[patience]
    if (sender === undefined) {
      const key = asked.keys[0] as string
      sender = new BatchSender(() => this.nodeOf(key), this.#listener)
      senders[patience] = sender
    }
    return sender
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
    if (!this.#commands.isCluster) return true
    const { keys } = asked
    const slot = this.slotOf(keys[0] as string)
    return keys.every((key) => this.slotOf(key) === slot)
  }

  /** Calls back with every batch sender that there is. */
  #eachOpenSender(work: (sender: BatchSender) => void): void {
    for (const senders of this.#senders.values())
      for (const sender of senders) if (sender !== undefined) work(sender)
  }

  /** Does the same for the counters of each batch sender, all at once. */
  eachSender<One>(
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
    this.#eachOpenSender((sender) => sender.close(error))
    for (const node of this.#nodes.values()) node.breaker.stop()
  }
}

/** Returns the same number for deadlines of which none is more than twice as long as another. */
export function patienceClassOf(withinMs: number): number {
  return 32 - Math.clz32(withinMs)
}
