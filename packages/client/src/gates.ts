import { Gate, type GateSettings } from "./gate.ts"
import type { GateStatus } from "./gate-status.ts"

/** How often gates without use are looked for, at most. */
const SWEEP_MS = 60_000

/** The gates of a paced fetch, by key. A gate that remembers nothing useful is dropped when another key comes. */
export class Gates {
  readonly #settings: GateSettings
  readonly #gates = new Map<string, Gate>()
  #sweptAtMs = 0

  constructor(settings: GateSettings) {
    this.#settings = settings
  }

  of(key: string): Gate {
    const known = this.#gates.get(key)
    if (known !== undefined) return known
    this.#sweep()
    const made = new Gate(key, this.#settings)
    this.#gates.set(key, made)
    return made
  }

  status(): GateStatus[] {
    return [...this.#gates.values()].map((gate) => gate.status())
  }

  #sweep(): void {
    const nowMs = performance.now()
    if (nowMs < this.#sweptAtMs + SWEEP_MS) return
    this.#sweptAtMs = nowMs
    for (const [key, gate] of this.#gates) if (gate.isIdle(nowMs)) this.#gates.delete(key)
  }
}
