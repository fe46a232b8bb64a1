import { roomFor } from "../replay/typed-arrays.ts"
import { PeakCurve } from "./peak-curve.ts"
import type { RequestGroup } from "./request-groups.ts"
import type { SampledClients } from "./sampled-clients.ts"
import type { WindowLength } from "./window-length.ts"
import { createWindowPeaks, type WindowAlgorithm, type WindowPeaks } from "./window-peaks.ts"

/**
 * Counts the requests of one group, for each window and client. The memory depends only on the number of clients in
 * the group.
 */
export class GroupDemand {
  readonly group: RequestGroup
  requests = 0
  /** Number of requests with the status of a failed login. These requests are counted only for logins. */
  failed = 0
  readonly #peaks: readonly WindowPeaks[]
  /** True if the group contains every client, so the place of a client is its number. */
  readonly #isWhole: boolean
  /** The place of each client in `#peaks`, plus 1; 0 if the group has no request of the client. */
  #places = new Uint32Array(0)
  readonly #free: number[] = []
  #end = 0

  constructor(group: RequestGroup, algorithm: WindowAlgorithm, windows: readonly WindowLength[]) {
    this.group = group
    this.#isWhole = group.match === undefined
    this.#peaks = windows.map((window) => createWindowPeaks(algorithm, window))
  }

  /** Counts a request. Times must not decrease. */
  add(client: number, atMs: number): void {
    this.requests++
    const place = this.#isWhole ? client : this.#placeOf(client)
    for (let i = 0; i < this.#peaks.length; i++) (this.#peaks[i] as WindowPeaks).add(place, atMs)
  }

  /** Removes a client, because its number may be reused for another client. */
  forget(client: number): void {
    const place = this.#isWhole ? client : (this.#places[client] ?? 0) - 1
    if (place < 0) return
    if (!this.#isWhole) {
      this.#places[client] = 0
      this.#free.push(place)
    }
    for (const peaks of this.#peaks) peaks.forget(place)
  }

  /** Returns the peak of a client in a window, by the window's index; 0 if the group has no request of the client. */
  peakOf(client: number, window: number): number {
    const place = this.#isWhole ? client : (this.#places[client] ?? 0) - 1
    return place < 0 ? 0 : (this.#peaks[window] as WindowPeaks).peakOf(place)
  }

  /** Returns the peaks of all clients in a window, except the clients in `except`. */
  curve(window: number, clients: SampledClients, except: ReadonlySet<number> = new Set()): PeakCurve {
    const exact = new Map<number, number>()
    const sampled = new Map<number, number>()
    const { factor } = clients
    for (let client = 0; client < clients.end; client++) {
      const peak = this.peakOf(client, window)
      if (peak === 0 || except.has(client)) continue
      const weight = clients.weightOf(client)
      if (weight === 0) continue
      const counts = weight === 1 ? exact : sampled
      counts.set(peak, (counts.get(peak) ?? 0) + 1)
    }
    return new PeakCurve(exact, sampled, factor)
  }

  #placeOf(client: number): number {
    this.#places = roomFor(this.#places, client)
    const known = this.#places[client] as number
    if (known !== 0) return known - 1
    const place = this.#free.pop() ?? this.#end++
    this.#places[client] = place + 1
    return place
  }
}
