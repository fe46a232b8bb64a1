import { Gate, type GateSettings } from "./gate.ts"
import type { GateStatus } from "./gate-status.ts"

/** The minimum time between two sweeps for unused gates, unless there are too many gates. */
const SWEEP_MS = 60_000
/** The maximum number of gates without calls. Each gate takes about a kilobyte. */
const MOST_UNUSED = 10_000

/**
 * The gates of a paced fetch, by key. When a new key is used, gates whose state no longer matters are removed. If
 * there are too many gates, gates without calls are also removed, beginning with the least recently used.
 */
export class Gates {
  readonly #settings: GateSettings
  readonly #gates = new Map<string, Gate>()
  #sweptAtMs = 0
  #most = MOST_UNUSED

  constructor(settings: GateSettings) {
    this.#settings = settings
  }

  of(key: string): Gate {
    const nowMs = performance.now()
    let gate = this.#gates.get(key)
    if (gate === undefined) {
      this.#sweep(nowMs)
      gate = new Gate(key, this.#settings)
      this.#gates.set(key, gate)
    }
    gate.usedAtMs = nowMs
    return gate
  }

  status(): GateStatus[] {
    return [...this.#gates.values()].map((gate) => gate.status())
  }

  #sweep(nowMs: number): void {
    const isFull = this.#gates.size >= this.#most
    if (!isFull && nowMs < this.#sweptAtMs + SWEEP_MS) return
    this.#sweptAtMs = nowMs
    const unused = [...this.#gates.values()]
      .filter((gate) => !gate.isUsed)
      .sort((a, b) => a.usedAtMs - b.usedAtMs)
    // If there are too many gates, keep only half of the maximum, so that sweeps stay rare.
    const kept = isFull ? MOST_UNUSED / 2 : unused.length
    unused.forEach((gate, index) => {
      if (unused.length - index > kept || gate.isIdle(nowMs)) this.#gates.delete(gate.key)
    })
    this.#most = this.#gates.size + MOST_UNUSED / 2
  }
}
