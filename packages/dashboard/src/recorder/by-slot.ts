import { SLOT_MS } from "./snapshot.ts"

/** Keeps a table for the current slot, and what is left of the table of the slot before it. */
export class BySlot<Table, Rest> {
  readonly #create: () => Table
  readonly #restOf: (table: Table) => Rest
  #slot = Number.NEGATIVE_INFINITY
  #table: Table | undefined
  #rest: Rest | undefined

  constructor(create: () => Table, restOf: (table: Table) => Rest) {
    this.#create = create
    this.#restOf = restOf
  }

  /** Returns the table of the current slot. */
  at(nowMs: number): Table {
    this.#turn(nowMs)
    this.#table ??= this.#create()
    return this.#table
  }

  /** Returns the tables of both slots. A slot without an entry has none. */
  read(nowMs: number): { readonly current: Table | undefined; readonly previous: Rest | undefined } {
    this.#turn(nowMs)
    return { current: this.#table, previous: this.#rest }
  }

  #turn(nowMs: number): void {
    const slot = Math.floor(nowMs / SLOT_MS)
    if (slot <= this.#slot) return
    const isNext = slot === this.#slot + 1
    this.#rest = isNext && this.#table !== undefined ? this.#restOf(this.#table) : undefined
    this.#table = undefined
    this.#slot = slot
  }
}
