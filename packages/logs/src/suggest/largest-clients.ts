/** A client with its number of requests: at most `count`, and at least `count - error`. */
export interface LargeClient {
  readonly client: number
  readonly count: number
  readonly error: number
}

/**
 * A list of the clients with the most requests, in constant memory (Space-Saving: Metwally, Agrawal and El Abbadi
 * 2005). A client that is not in the list replaces the client with the fewest requests, and inherits its count as a
 * possible error. Therefore, the list contains every client with more requests than the smallest count.
 */
export class LargestClients {
  readonly #most: number
  /** A heap by count, the smallest first. */
  readonly #clients: number[] = []
  readonly #counts: number[] = []
  readonly #errors: number[] = []
  readonly #places = new Map<number, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Adds a client whose exact number of requests is known. The list must not be full. */
  insert(client: number, count: number): void {
    const place = this.#clients.length
    this.#put(place, client, count, 0)
    this.#up(place)
  }

  /** Counts a request. Returns the client that was removed from the full list; otherwise, undefined. */
  add(client: number): number | undefined {
    const place = this.#places.get(client)
    if (place !== undefined) {
      this.#counts[place] = (this.#counts[place] as number) + 1
      this.#down(place)
      return undefined
    }
    if (this.#clients.length < this.#most) {
      this.insert(client, 1)
      return undefined
    }
    const replaced = this.#clients[0] as number
    const least = this.#counts[0] as number
    this.#places.delete(replaced)
    this.#put(0, client, least + 1, least)
    this.#down(0)
    return replaced
  }

  has(client: number): boolean {
    return this.#places.has(client)
  }

  /** True if at least half of the client's count certainly comes from its own requests. */
  isLarge(client: number): boolean {
    const place = this.#places.get(client)
    return place !== undefined && (this.#counts[place] as number) >= 2 * (this.#errors[place] as number)
  }

  /** Returns the list, the largest client first. */
  get list(): readonly LargeClient[] {
    return this.#clients
      .map((client, at) => ({ client, count: this.#counts[at] as number, error: this.#errors[at] as number }))
      .sort((one, other) => other.count - one.count)
  }

  #up(from: number): void {
    let place = from
    while (place > 0) {
      const parent = (place - 1) >>> 1
      if ((this.#counts[parent] as number) <= (this.#counts[place] as number)) return
      this.#swap(parent, place)
      place = parent
    }
  }

  #down(from: number): void {
    let place = from
    for (;;) {
      const left = 2 * place + 1
      if (left >= this.#counts.length) return
      const right = left + 1
      const isRight =
        right < this.#counts.length && (this.#counts[right] as number) < (this.#counts[left] as number)
      const child = isRight ? right : left
      if ((this.#counts[place] as number) <= (this.#counts[child] as number)) return
      this.#swap(place, child)
      place = child
    }
  }

  #swap(one: number, other: number): void {
    const [client, count, error] = [this.#clients[one], this.#counts[one], this.#errors[one]]
    this.#put(
      one,
      this.#clients[other] as number,
      this.#counts[other] as number,
      this.#errors[other] as number,
    )
    this.#put(other, client as number, count as number, error as number)
  }

  #put(place: number, client: number, count: number, error: number): void {
    this.#clients[place] = client
    this.#counts[place] = count
    this.#errors[place] = error
    this.#places.set(client, place)
  }
}
