import type { CounterKey } from "../../stores/store.ts"
import type { Holding } from "./holding.ts"

/** The permits that a process holds, with their totals. */
export class HeldPermits {
  readonly #all = new Set<Holding>()
  /**
   * The permits of each counter and partition. Undefined until somebody asks for them, because only an outage needs
   * them.
   */
  #byCounter: Map<string, Map<string, number>> | undefined
  /** Number of permits. */
  permits = 0

  add(holding: Holding): void {
    this.#all.add(holding)
    this.permits += holding.permits
    if (this.#byCounter !== undefined) count(this.#byCounter, holding, holding.permits)
  }

  delete(holding: Holding): void {
    if (!this.#all.delete(holding)) return
    this.permits -= holding.permits
    if (this.#byCounter !== undefined) count(this.#byCounter, holding, -holding.permits)
  }

  has(holding: Holding): boolean {
    return this.#all.has(holding)
  }

  [Symbol.iterator](): IterableIterator<Holding> {
    return this.#all.values()
  }

  /** Returns the number of permits in a counter. */
  permitsIn({ policy, partition }: CounterKey): number {
    let byCounter = this.#byCounter
    if (byCounter === undefined) {
      byCounter = new Map()
      for (const holding of this.#all) count(byCounter, holding, holding.permits)
      this.#byCounter = byCounter
    }
    return byCounter.get(policy.counter)?.get(partition) ?? 0
  }
}

function count(
  byCounter: Map<string, Map<string, number>>,
  { policy, partition }: CounterKey,
  permits: number,
): void {
  const byPartition = byCounter.get(policy.counter) ?? new Map<string, number>()
  byCounter.set(policy.counter, byPartition)
  const sum = (byPartition.get(partition) ?? 0) + permits
  if (sum > 0) byPartition.set(partition, sum)
  else byPartition.delete(partition)
}
