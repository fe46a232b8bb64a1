/** A place in a queue. */
export interface Place<Item> {
  readonly item: Item
  ahead: Place<Item> | undefined
  behind: Place<Item> | undefined
}

/** A doubly linked list. Items are added at the end or before another item. Removing any item takes constant time. */
export class Queue<Item> {
  first: Place<Item> | undefined
  last: Place<Item> | undefined
  size = 0

  /** Adds an item before the place `behind`, or at the end. */
  add(item: Item, behind?: Place<Item>): Place<Item> {
    const ahead = behind === undefined ? this.last : behind.ahead
    const place: Place<Item> = { item, ahead, behind }
    if (ahead === undefined) this.first = place
    else ahead.behind = place
    if (behind === undefined) this.last = place
    else behind.ahead = place
    this.size++
    return place
  }

  remove(place: Place<Item>): void {
    const { ahead, behind } = place
    // Otherwise a reference to this place would keep all later items in memory.
    place.ahead = undefined
    place.behind = undefined
    if (ahead === undefined) this.first = behind
    else ahead.behind = behind
    if (behind === undefined) this.last = ahead
    else behind.ahead = ahead
    this.size--
  }
}
