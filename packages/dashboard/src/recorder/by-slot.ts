import { SLOT_MS } from "./snapshot.ts"

/** Keeps a table for the current slot, and the table of the slot before it. */
export class BySlot<Table> {
  readonly #create: () => Table
  #slot = Number.NEGATIVE_INFINITY
  #current: Table | undefined
  #previous: Table | undefined

  constructor(create: () => Table) {
    this.#create = create
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
    this.#previous = slot === this.#slot + 1 ? this.#current : undefined
    this.#current = undefined
    this.#slot = slot
  }
}
