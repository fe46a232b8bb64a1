import type { ServerResponse } from "node:http"
import { decisionOn } from "../../limiter/interface/mount-decision.ts"
import type { Guard } from "./guard.ts"
import { latePlace, type MountedLayer } from "./late-place.ts"

/** Milliseconds in which an app may still add routes, although it already listens. */
const START_MS = 1_000
/** The number of requests that functions after the limiter must respond with 404 before they count as 404 handlers. */
const ENOUGH = 10

/**
 * Detects a limiter that is mounted after all routes of its path, so that only unmatched requests reach it. One look at
 * the app is enough if no route is before the limiter, or if a route is after it. Otherwise this class reads the status
 * of each response, until a status is not 404 or the limiter is certainly mounted too late. Then it warns once.
 */
export class MountOrder {
  /** False once the place of the limiter is known. */
  isWatching = true
  readonly #guard: Pick<Guard<never>, "warnMountedTooLate">
  readonly #createdMs: number = performance.now()
  #unmatched = 0

  /** `guard` is the guard of the limiter, which warns. */
  constructor(guard: Pick<Guard<never>, "warnMountedTooLate">) {
    this.#guard = guard
  }

  /**
   * Watches a request that has reached the limiter. Call it only while `isWatching` is true. `response` is the one of
   * Node's own server. `layersOf` returns the layers of the app.
   */
  watch(
    request: {
      /** The HTTP method, in upper case. */
      readonly method: string
    },
    response: ServerResponse,
    limiter: object,
    layersOf: () => readonly MountedLayer[],
  ): void {
    // Frameworks respond to OPTIONS for a route after all middleware.
    if (request.method === "OPTIONS") return
    if (latePlace(layersOf(), limiter) === undefined) {
      this.isWatching = false
      return
    }
    response.once("finish", () => {
      if (!this.isWatching || decisionOn(request)?.allowed === false) return
      if (response.statusCode !== 404) {
        this.isWatching = false
        return
      }
      this.#unmatched++
      const place = latePlace(layersOf(), limiter)
      const isEnough = place?.hasHandlers !== true || this.#unmatched >= ENOUGH
      if (!isEnough || performance.now() - this.#createdMs < START_MS) return
      this.isWatching = false
      if (place !== undefined) this.#guard.warnMountedTooLate(place.routes)
    })
  }
}
