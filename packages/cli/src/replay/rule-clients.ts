import type { Policy } from "@sluice/core"
import { roomFor } from "./typed-arrays.ts"

/** What one client did under one rule. */
export interface ClientOfRule {
  /** The client's number in the table of clients. */
  readonly client: number
  readonly requests: number
  readonly refused: number
  /** The highest demand, relative to the limit. Refused requests count as well. */
  readonly peak: number
  /** Epoch milliseconds. */
  readonly firstRefused: number
  readonly lastRefused: number
}

/** What a request asks of a rule: its units, and the policy of its client. */
export interface RequestedUnits {
  readonly policy: Policy
  readonly cost: number
}

/**
 * Counts the requests and refusals of each client of a rule, and its peak: the most units that it asked for, whether or
 * not they were admitted. A peak does not depend on other clients. For windows, it is the count of a sliding window, and
 * does not depend on the limit. For buckets, it is the level of a bucket without a bottom.
 *
 * Takes 49 bytes for each number up to the highest of a client of the rule.
 */
export class RuleClients {
  readonly #windowMs: number
  readonly #isBucket: boolean
  #requests = new Uint32Array(0)
  #refused = new Uint32Array(0)
  /** 1 if the quota refused the client, and not only a list, a penalty or a missing field. */
  #isOver = new Uint8Array(0)
  #peaks = new Float64Array(0)
  /** The number of the window that a client was last seen in, or the time of the level. */
  #times = new Float64Array(0)
  /** The units of this window, or the level. */
  #current = new Float64Array(0)
  /** The units of the window before. */
  #previous = new Float64Array(0)
  #firstRefused = new Float64Array(0)
  #lastRefused = new Float64Array(0)
  #seen = 0

  constructor(windowMs: number, isBucket: boolean) {
    this.#windowMs = windowMs
    this.#isBucket = isBucket
  }

  /** Counts a request. */
  add(client: number, atMs: number, { policy, cost }: RequestedUnits): void {
    if (client >= this.#requests.length) this.#grow(client)
    const requests = this.#requests[client] as number
    if (requests === 0) this.#seen++
    this.#requests[client] = requests + 1
    const peak = this.#isBucket
      ? this.#levelOf(client, atMs, cost, policy) / Math.max(1, policy.burst ?? policy.limit)
      : this.#countOf(client, atMs, cost) / Math.max(1, policy.limit)
    if (peak > (this.#peaks[client] as number)) this.#peaks[client] = peak
  }

  /** Counts a refusal of a request that was counted before. `isQuota` is true if the client's demand was the reason. */
  refuse(client: number, atMs: number, isQuota: boolean): void {
    if (this.#refused[client] === 0) this.#firstRefused[client] = atMs
    this.#refused[client] = (this.#refused[client] as number) + 1
    this.#lastRefused[client] = atMs
    if (isQuota) this.#isOver[client] = 1
  }

  /** Number of clients that sent a request. */
  get seen(): number {
    return this.#seen
  }

  /** Calls `visit` with the peak of each client, and whether it was refused, and refused for its demand. */
  visitAll(visit: (peak: number, isRefused: boolean, isOver: boolean) => void): void {
    for (let client = 0; client < this.#requests.length; client++) {
      if (this.#requests[client] === 0) continue
      visit(this.#peaks[client] as number, this.#refused[client] !== 0, this.#isOver[client] === 1)
    }
  }

  /** Returns the clients that were refused most often, at most `most`. */
  mostRefused(most: number): readonly ClientOfRule[] {
    let found: number[] = []
    let least = 1
    const sort = (): void => {
      found.sort((one, other) => (this.#refused[other] as number) - (this.#refused[one] as number))
      found = found.slice(0, most)
      if (found.length === most) least = (this.#refused[found.at(-1) as number] as number) + 1
    }
    for (let client = 0; client < this.#refused.length; client++) {
      if ((this.#refused[client] as number) < least) continue
      found.push(client)
      if (found.length >= 4 * most) sort()
    }
    sort()
    return found.map((client) => ({
      client,
      requests: this.#requests[client] as number,
      refused: this.#refused[client] as number,
      peak: this.#peaks[client] as number,
      firstRefused: this.#firstRefused[client] as number,
      lastRefused: this.#lastRefused[client] as number,
    }))
  }

  #countOf(client: number, atMs: number, units: number): number {
    const windowMs = this.#windowMs
    const window = Math.floor(atMs / windowMs)
    const last = this.#times[client] as number
    if (window !== last) {
      this.#previous[client] = window === last + 1 ? (this.#current[client] as number) : 0
      this.#current[client] = 0
      this.#times[client] = window
    }
    const current = (this.#current[client] as number) + units
    this.#current[client] = current
    const previous = this.#previous[client] as number
    if (previous === 0) return current
    const elapsedMs = Math.floor(atMs) - window * windowMs
    return current + Math.floor((previous * (windowMs - elapsedMs)) / windowMs)
  }

  #levelOf(client: number, atMs: number, units: number, { limit }: Policy): number {
    const elapsedMs = atMs - (this.#times[client] as number)
    const left = Math.max(0, (this.#current[client] as number) - (elapsedMs * limit) / this.#windowMs)
    this.#times[client] = atMs
    this.#current[client] = left + units
    return left + units
  }

  #grow(client: number): void {
    this.#requests = roomFor(this.#requests, client)
    this.#refused = roomFor(this.#refused, client)
    this.#isOver = roomFor(this.#isOver, client)
    this.#peaks = roomFor(this.#peaks, client)
    this.#times = roomFor(this.#times, client)
    this.#current = roomFor(this.#current, client)
    this.#previous = roomFor(this.#previous, client)
    this.#firstRefused = roomFor(this.#firstRefused, client)
    this.#lastRefused = roomFor(this.#lastRefused, client)
  }
}
