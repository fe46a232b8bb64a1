import type { ServerResponse } from "node:http"
import { decisionOn } from "../../limiter/interface/mount-decision.ts"
import type { Guard } from "./guard.ts"
import { latePlace, type MountedLayer } from "./late-place.ts"

/** Milliseconds in which an app that already listens may still add routes. */
const START_MS = 1_000
/** The number of 404 responses in a row after which the functions behind the limiter count as 404 handlers. */
const ENOUGH = 10

/**
 * Detects a limiter that is mounted after all routes of its path, so that only unmatched requests reach it.
 * Inspecting the app once is enough if no route is mounted before the limiter, or if a route is mounted after the
 * limiter. Otherwise this class reads the status of each response. The class stops at the first status other than
 * 404, or warns once when the limiter is certainly mounted too late.
 */
export class MountOrder {
  /** False once the place of the limiter is known. */
  isWatching = true
  readonly #guard: Pick<Guard<never>, "warnMountedTooLate">
  readonly #createdMs: number = performance.now()
  #unmatched = 0

  /** `guard` is the limiter's guard, which logs the warning. */
  constructor(guard: Pick<Guard<never>, "warnMountedTooLate">) {
    this.#guard = guard
  }

  /**
   * Watches a request that has reached the limiter. Call it only while `isWatching` is true. `response` is the
   * response of Node's own server. `layersOf` returns the layers of the app.
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
