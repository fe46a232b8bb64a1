/** So long may a connection to a node of a cluster take before it counts as none. */
const PATIENCE_MS = 1_000

/**
 * Which nodes of a cluster are being connected to for the first time. Clients connect to a node when there is a command
 * for it, so a node that refused the first commands would never be asked: what is queued meanwhile waits for
 * milliseconds. A node whose connection was lost is another matter: its queue may last as long as the outage.
 */
export class FirstConnections {
  /** By node the time at which it was first seen to connect, in monotonic milliseconds; -Infinity once it was ready. */
  readonly #sinceMs = new WeakMap<object, number>()

  /** Whether commands for the node may be sent, given whether it is ready now. */
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
