import { roomFor } from "./typed-arrays.ts"

/** What one client did under one rule. */
export interface ClientOfRule {
  /** The client's number in the table of clients. */
  readonly client: number
  readonly requests: number
  readonly refused: number
  /** The highest demand in a window, relative to the limit: refused requests count as well. */
  readonly peak: number
  /** Epoch milliseconds; 0 if nothing was refused. */
  readonly firstRefused: number
  readonly lastRefused: number
}

/**
 * Counts the requests and refusals of each client of a rule, and its peak: the most units that it asked for in a sliding
 * window, whether or not they were admitted. The peak does not depend on the limit. About 36 bytes for each client.
 */
export class RuleClients {
  readonly #windowMs: number
  #requests = new Uint32Array(0)
  #refused = new Uint32Array(0)
  #peaks = new Float32Array(0)
  /** The number of the window that a client was last seen in, and the units of this window and of the one before. */
  #windows = new Float64Array(0)
  #current = new Float64Array(0)
  #previous = new Float64Array(0)
  readonly #refusals = new Map<number, { readonly first: number; last: number }>()

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Counts a request. `limit` is the client's own limit. */
  add(client: number, atMs: number, units: number, limit: number): void {
    if (client >= this.#requests.length) this.#grow(client)
    this.#requests[client] = (this.#requests[client] as number) + 1
    const windowMs = this.#windowMs
    const window = Math.floor(atMs / windowMs)
    const last = this.#windows[client] as number
    let current = this.#current[client] as number
    let previous = this.#previous[client] as number
    if (window !== last) {
      previous = window === last + 1 ? current : 0
      current = 0
      this.#windows[client] = window
      this.#previous[client] = previous
    }
    current += units
    this.#current[client] = current
    const left =
      previous === 0 ? 0 : Math.floor((previous * (windowMs - (atMs - window * windowMs))) / windowMs)
    const peak = (left + current) / Math.max(1, limit)
    if (peak > (this.#peaks[client] as number)) this.#peaks[client] = peak
  }

  /** Counts a refusal of a request that was counted before. */
  refuse(client: number, atMs: number): void {
    this.#refused[client] = (this.#refused[client] as number) + 1
    const known = this.#refusals.get(client)
    if (known === undefined) this.#refusals.set(client, { first: atMs, last: atMs })
    else known.last = atMs
  }

  /** Returns the refused clients. */
  get refused(): readonly ClientOfRule[] {
    return Array.from(this.#refusals, ([client, { first, last }]) => ({
      client,
      requests: this.#requests[client] as number,
      refused: this.#refused[client] as number,
      peak: this.#peaks[client] as number,
      firstRefused: first,
      lastRefused: last,
    }))
  }

  /** Calls `visit` with the peak of each client. */
  forEachPeak(visit: (peak: number) => void): void {
    for (let client = 0; client < this.#requests.length; client++) {
      if ((this.#requests[client] as number) > 0) visit(this.#peaks[client] as number)
    }
  }

  #grow(client: number): void {
    this.#requests = roomFor(this.#requests, client)
    this.#refused = roomFor(this.#refused, client)
    this.#peaks = roomFor(this.#peaks, client)
    this.#windows = roomFor(this.#windows, client)
    this.#current = roomFor(this.#current, client)
    this.#previous = roomFor(this.#previous, client)
  }
}
