import type { Policy } from "@sluice/core/stores"
import { roomFor } from "./typed-arrays.ts"

/** The requests of one client under one rule. */
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

const STRIDE = 5
const REQUESTS = 0
const PEAK = 1
/**
 * For windows, the number of the client's latest window. For calendar periods, the start of the latest period. For
 * buckets, the time of the level.
 */
const TIME = 2
/** The units in the latest window, or the level. */
const CURRENT = 3
/** The units in the previous window. */
const PREVIOUS = 4

/** The demand of a request under a rule: its units, and the policy of its client. */
export interface RequestedUnits {
  readonly policy: Policy
  readonly cost: number
}

/**
 * Counts the requests and refusals of each client of a rule, and the client's peak: the most units that it requested,
 * whether or not they were admitted. A peak does not depend on other clients. For windows, it is the count of a
 * sliding window, and does not depend on the limit. For calendar periods, it is the count of a period. For buckets, it
 * is the level of a bucket that never runs empty.
 *
 * The arrays take 61 bytes for each client number, up to the highest number of the rule's clients. The counts that
 * every request needs are adjacent, because they are almost never in the processor's cache.
 */
export class RuleClients {
  readonly #windowMs: number
  readonly #isBucket: boolean
  /** `STRIDE` numbers for each client, at the offsets below. */
  #counts = new Float64Array(0)
  #refused = new Uint32Array(0)
  /** 1 if the client was refused for its demand, and not only by a list or for a missing field. */
  #isOver = new Uint8Array(0)
  #firstRefused = new Float64Array(0)
  #lastRefused = new Float64Array(0)
  #seen = 0

  constructor(windowMs: number, isBucket: boolean) {
    this.#windowMs = windowMs
    this.#isBucket = isBucket
  }

  /** Counts a request. */
  add(client: number, atMs: number, { policy, cost }: RequestedUnits): void {
    if (client >= this.#refused.length) this.#grow(client)
    const counts = this.#counts
    const at = client * STRIDE
    const requests = counts[at + REQUESTS] as number
    if (requests === 0) this.#seen++
    counts[at + REQUESTS] = requests + 1
    const peak = this.#isBucket
      ? this.#levelOf(at, atMs, cost, policy) / Math.max(1, policy.burst ?? policy.limit)
      : this.#countOf(at, atMs, cost, policy) / Math.max(1, policy.limit)
    if (peak > (counts[at + PEAK] as number)) counts[at + PEAK] = peak
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

  /** Calls `visit` for each client with its peak, whether it was refused, and whether it was refused for its demand. */
  visitAll(visit: (peak: number, isRefused: boolean, isOver: boolean) => void): void {
    for (let client = 0; client < this.#refused.length; client++) {
      const at = client * STRIDE
      if (this.#counts[at + REQUESTS] === 0) continue
      visit(this.#counts[at + PEAK] as number, this.#refused[client] !== 0, this.#isOver[client] === 1)
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
      requests: this.#counts[client * STRIDE + REQUESTS] as number,
      refused: this.#refused[client] as number,
      peak: this.#counts[client * STRIDE + PEAK] as number,
      firstRefused: this.#firstRefused[client] as number,
      lastRefused: this.#lastRefused[client] as number,
    }))
  }

  #countOf(at: number, atMs: number, units: number, { periods }: Policy): number {
    const counts = this.#counts
    if (periods !== undefined) {
      const startMs = periods.findLast((boundaryMs) => boundaryMs <= atMs) as number
      if (startMs !== counts[at + TIME]) counts[at + CURRENT] = 0
      counts[at + TIME] = startMs
      counts[at + CURRENT] = (counts[at + CURRENT] as number) + units
      return counts[at + CURRENT] as number
    }
    const windowMs = this.#windowMs
    const window = Math.floor(atMs / windowMs)
    const last = counts[at + TIME] as number
    if (window !== last) {
      counts[at + PREVIOUS] = window === last + 1 ? (counts[at + CURRENT] as number) : 0
      counts[at + CURRENT] = 0
      counts[at + TIME] = window
    }
    const current = (counts[at + CURRENT] as number) + units
    counts[at + CURRENT] = current
    const previous = counts[at + PREVIOUS] as number
    if (previous === 0) return current
    const elapsedMs = Math.floor(atMs) - window * windowMs
    return current + Math.floor((previous * (windowMs - elapsedMs)) / windowMs)
  }

  #levelOf(at: number, atMs: number, units: number, { limit }: Policy): number {
    const counts = this.#counts
    const elapsedMs = atMs - (counts[at + TIME] as number)
    const level = Math.max(0, (counts[at + CURRENT] as number) - (elapsedMs * limit) / this.#windowMs) + units
    counts[at + TIME] = atMs
    counts[at + CURRENT] = level
    return level
  }

  #grow(client: number): void {
    this.#refused = roomFor(this.#refused, client)
    this.#isOver = roomFor(this.#isOver, client)
    this.#firstRefused = roomFor(this.#firstRefused, client)
    this.#lastRefused = roomFor(this.#lastRefused, client)
    const counts = new Float64Array(this.#refused.length * STRIDE)
    counts.set(this.#counts)
    this.#counts = counts
  }
}
