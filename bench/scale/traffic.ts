import { random } from "../clients/sequence.ts"
import { START_MS } from "./timeline.ts"

/** Requests at random times, as a Poisson process. The requests begin at the start of the simulation. */
export class Arrivals {
  readonly #next: () => number
  readonly #meanMs: number
  #atMs = START_MS

  /** `perMs` is the mean number of requests in a millisecond. The same seed produces the same requests. */
  constructor(perMs: number, seed: number) {
    this.#next = random(seed)
    this.#meanMs = 1 / perMs
    this.#advance()
  }

  /** Returns the number of requests before `untilMs` that have not been returned yet. */
  until(untilMs: number): number {
    let requests = 0
    for (; this.#atMs < untilMs; this.#advance()) requests++
    return requests
  }

  #advance(): void {
    this.#atMs -= Math.log(1 - this.#next()) * this.#meanMs
  }
}

/** Returns shares that are proportional to 1, 1/2, 1/3 and so on. The shares sum to 1. */
export function harmonicShares(count: number): readonly number[] {
  const weights = Array.from({ length: count }, (_, i) => 1 / (i + 1))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => weight / sum)
}

/** Returns equal shares. The shares sum to 1. */
export function equalShares(count: number): readonly number[] {
  return new Array<number>(count).fill(1 / count)
}

/** Returns the arrivals of one process for each share of the traffic. Each process has its own seed. */
export function spread(perMs: number, shares: readonly number[], seed: number): readonly Arrivals[] {
  return shares.map((share, i) => new Arrivals(perMs * share, seed + 7_919 * i))
}
