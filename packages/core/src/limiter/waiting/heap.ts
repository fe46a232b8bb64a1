/** A binary heap. The item with the smallest key is the first, and adding or removing an item takes O(log n) steps. */
export class Heap<Item> {
  readonly #keyOf: (item: Item) => number
  /** A binary tree in an array. No item has a smaller key than its parent, which is at about half the item's index. */
  readonly #items: Item[] = []
  readonly #indexes = new Map<Item, number>()

  /** The key of an item must not change while the item is in the heap. */
  constructor(keyOf: (item: Item) => number) {
    this.#keyOf = keyOf
  }

  get first(): Item | undefined {
    return this.#items[0]
  }

  get size(): number {
    return this.#items.length
  }

  /** Returns all items in ascending order of their keys. */
  sorted(): readonly Item[] {
    return this.#items.toSorted((one, other) => this.#keyOf(one) - this.#keyOf(other))
  }

  /** Adds an item; a no-op if the heap contains it already. */
  add(item: Item): void {
    if (this.#indexes.has(item)) return
    this.#items.push(item)
    this.#rise(item, this.#items.length - 1)
  }

  /** Removes an item; a no-op if the heap does not contain it. */
  delete(item: Item): void {
    const index = this.#indexes.get(item)
    if (index === undefined) return
    this.#indexes.delete(item)
    const last = this.#items.pop() as Item
    if (last === item) return
    this.#rise(last, this.#sink(index))
  }

  #rise(item: Item, from: number): void {
    const key = this.#keyOf(item)
    let index = from
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = this.#items[parent] as Item
      if (this.#keyOf(above) <= key) break
      this.#put(above, index)
      index = parent
    }
    this.#put(item, index)
  }

  /** Moves an empty place down until no item is below this place. Returns its index. */
  #sink(from: number): number {
    let index = from
    for (let child = 2 * index + 1; child < this.#items.length; child = 2 * index + 1) {
      const [left, right] = [this.#items[child] as Item, this.#items[child + 1]]
      const isRight = right !== undefined && this.#keyOf(right) < this.#keyOf(left)
      this.#put(isRight ? right : left, index)
      index = isRight ? child + 1 : child
    }
    return index
  }

  #put(item: Item, index: number): void {
    this.#items[index] = item
    this.#indexes.set(item, index)
  }
}
