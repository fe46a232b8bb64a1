/** Longest time for the first connection to a cluster node. After that, the node counts as not ready. */
const PATIENCE_MS = 1_000

/**
 * The nodes of a cluster that a client connects to for the first time. A client connects to a node only when there is a
 * command for it, so the first commands must be sent. They wait in the client's queue for only a few milliseconds. A
 * node that has lost its connection is different, because its queue may last as long as the outage.
 */
export class FirstConnections {
  /** Monotonic milliseconds at which each node was first seen connecting; -Infinity once it was ready. */
  readonly #sinceMs = new WeakMap<object, number>()

  /** True if commands for the node may be sent. `ready` is true if the node is ready now. */
  accepts(node: object, ready: boolean): boolean {
    const since = this.#sinceMs.get(node)
    if (ready) {
      if (since !== Number.NEGATIVE_INFINITY) this.#sinceMs.set(node, Number.NEGATIVE_INFINITY)
      return true
    }
    const nowMs = performance.now()
    if (since === undefined) this.#sinceMs.set(node, nowMs)
    return nowMs - (since ?? nowMs) < PATIENCE_MS
  }
}
