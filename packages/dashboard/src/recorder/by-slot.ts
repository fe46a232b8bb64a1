import { SLOT_MS } from "./snapshot.ts"

/** Notes that records take more bytes, or fewer if `bytes` is negative. */
export type Grow = (bytes: number) => void

/** Keeps a table for the current slot, and the table of the slot before it. */
export class BySlot<Table extends { readonly bytes: number }> {
  readonly #create: () => Table
  readonly #grow: Grow
  #slot = Number.NEGATIVE_INFINITY
  #current: Table | undefined
  #previous: Table | undefined

  /** The tables themselves note how they grow. */
  constructor(create: () => Table, grow: Grow) {
    this.#create = create
    this.#grow = grow
  }

  /** Returns the table of the current slot. */
  at(nowMs: number): Table {
    this.#turn(nowMs)
    this.#current ??= this.#create()
    return this.#current
  }

  /** Returns the tables of both slots, the current slot first. A slot without an entry has none. */
  read(nowMs: number): readonly Table[] {
    this.#turn(nowMs)
    return [this.#current, this.#previous].filter((table) => table !== undefined)
  }

  #turn(nowMs: number): void {
    const slot = Math.floor(nowMs / SLOT_MS)
    if (slot <= this.#slot) return
    const isNext = slot === this.#slot + 1
    const dropped = isNext ? [this.#previous] : [this.#previous, this.#current]
    for (const table of dropped) if (table !== undefined) this.#grow(-table.bytes)
    this.#previous = isNext ? this.#current : undefined
    this.#current = undefined
    this.#slot = slot
  }
}
