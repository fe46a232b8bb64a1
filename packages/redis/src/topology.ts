import type { StoreWarningEvent } from "@sluice/core/stores"
import { type BatchListener, BatchSender } from "./batching/batch-sender.ts"
import type { RedisCommands } from "./commands.ts"
import { Node, type Timekeeping } from "./node/node.ts"
import type { RedisRequest } from "./scripts/script-input.ts"

/** The name of the only slot, if the client is not a cluster client. */
const ONLY = ""

/** The servers behind a client, and their batch senders. In a cluster there are senders for each slot in use. */
export class RedisTopology {
  readonly #commands: RedisCommands
  readonly #timekeeping: Timekeeping
  readonly #listener: BatchListener
  readonly #warn: ((event: StoreWarningEvent) => void) | undefined
  /** Batch senders by slot, and then by the timeout class of the caller. */
  readonly #senders = new Map<string, (BatchSender | undefined)[]>()
  /** Servers by the name that the client uses for each. */
  readonly #nodes = new Map<string, Node>()

  /**
   * `warn` is called if a server evicts keys, or if its clock goes back. Without `warn`, the store does not check for
   * evictions.
   */
  constructor(
    commands: RedisCommands,
    timekeeping: Timekeeping,
    listener: BatchListener,
    warn?: (event: StoreWarningEvent) => void,
  ) {
    this.#commands = commands
    this.#timekeeping = timekeeping
    this.#listener = listener
    this.#warn = warn
  }

  /** Returns the server that currently serves a key. */
  nodeOf(key: string): Node {
    const name = this.#commands.isCluster ? this.#commands.nodeOf(key) : ONLY
    let node = this.#nodes.get(name)
    if (node === undefined) {
      this.#forgetNodes()
      node = new Node(this.#commands, this.#timekeeping, key, this.#warn)
      this.#nodes.set(name, node)
    }
    // Store the latest key, because slots move: with an old key, the breaker's probe could be sent to another server.
    node.key = key
    return node
  }

  /** Removes nodes that have left the cluster, so that they do not accumulate as addresses change. */
  #forgetNodes(): void {
    for (const [name, node] of this.#nodes) {
      if (this.#commands.nodeOf(node.key) === name) continue
      node.breaker.stop()
      this.#nodes.delete(name)
    }
  }

  /**
   * Returns the batch sender for a request and its timeout. Requests share a call only if their timeouts differ by
   * less than a factor of two, because a call expires at its earliest deadline. Reads the request's keys only in a
   * cluster, or once for a new batch sender.
   */
  senderOf(asked: RedisRequest, withinMs: number): BatchSender {
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
      // With such a client, a request waits only for its own call and its own timer.
      if (this.#commands.isPerRequest !== true) senders[patience] = sender
    }
    return sender
  }

  /** Number of servers whose circuit breaker is open. */
  get openBreakers(): number {
    let open = 0
    for (const { breaker } of this.#nodes.values()) if (breaker.isOpen) open++
    return open
  }

  /** The last round-trip times of all servers. */
  get recentRoundTripsMs(): readonly number[] {
    return [...this.#nodes.values()].flatMap(({ roundTrips }) => roundTrips.recent)
  }

  /**
   * Returns the slot of a key: in a cluster, the text up to the end of the key's hash tag. All keys of a call must be
   * in one slot.
   */
  slotOf(key: string): string {
    return this.#commands.isCluster ? key.slice(0, key.indexOf("}")) : ONLY
  }

  /** True if one call may contain all keys of the request. */
  areTogether(asked: RedisRequest): boolean {
    if (!this.#commands.isCluster) return true
    const { keys } = asked
    const slot = this.slotOf(keys[0] as string)
    return keys.every((key) => this.slotOf(key) === slot)
  }

  /** Groups the counters by slot and calls `work` with each group, without waiting for the previous group. */
  eachSender<One>(
    all: readonly One[],
    keyOf: (one: One) => string,
    work: (some: readonly One[], keys: readonly string[], node: Node) => Promise<void>,
  ): readonly Promise<void>[] {
    const keys = all.map(keyOf)
    return bySlot(keys, (key) => this.slotOf(key)).map((places) => {
      const own = places.map((place) => keys[place] as string)
      return work(
        places.map((place) => all[place] as One),
        own,
        this.nodeOf(own[0] as string),
      )
    })
  }

  /** Rejects all waiting requests and stops all probes. */
  close(error: Error): void {
    for (const senders of this.#senders.values()) for (const sender of senders) sender?.close(error)
    for (const node of this.#nodes.values()) node.breaker.stop()
  }
}

/** Returns the indexes of the keys, grouped by slot. */
export function bySlot(keys: readonly string[], slotOf: (key: string) => string): (readonly number[])[] {
  const groups = new Map<string, number[]>()
  keys.forEach((key, place) => {
    const slot = slotOf(key)
    const group = groups.get(slot)
    if (group === undefined) groups.set(slot, [place])
    else group.push(place)
  })
  return [...groups.values()]
}

/** Returns a timeout's class. Two timeouts of the same class differ by less than a factor of two. */
export function patienceClassOf(withinMs: number): number {
  return Math.clz32(withinMs)
}
