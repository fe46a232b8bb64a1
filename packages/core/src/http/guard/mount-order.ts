import type { ServerResponse } from "node:http"
import type { Decision } from "../../decision/decision.ts"
import type { Guard } from "./guard.ts"

/** Milliseconds in which an app may still add routes, although it already listens. */
const START_MS = 1_000
/** The number of requests that functions after the limiter must answer with 404 before they count as 404 handlers. */
const ENOUGH = 10

/** What an app has before and after a limiter that may be mounted too late. */
export interface LatePlace {
  /** The routes before the limiter: "GET /login and every other route". */
  readonly routes: string
  /** Whether functions after the limiter could answer. */
  readonly hasHandlers: boolean
}

/** A request that has reached a limiter, as its adapter sees the app. */
export interface WatchedRequest {
  /** The request's method. */
  readonly method: string
  /** The response of Node's own server. */
  readonly response: ServerResponse
  /**
   * Returns the place of the limiter. Undefined if the limiter is not certainly after all routes of its path, or if
   * other limiters are before it.
   */
  readonly placeOf: () => LatePlace | undefined
  /** Returns the decision on the request when it has been answered. */
  readonly decisionOf: () => Decision | undefined
}

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

  /** Watches a request that has reached the limiter. Call it only while `isWatching` is true. */
  watch({ method, response, placeOf, decisionOf }: WatchedRequest): void {
    // Frameworks answer OPTIONS for a route after all middleware.
    if (method === "OPTIONS") return
    if (placeOf() === undefined) {
      this.isWatching = false
      return
    }
    response.once("finish", () => {
      if (!this.isWatching || decisionOf()?.allowed === false) return
      if (response.statusCode !== 404) {
        this.isWatching = false
        return
      }
      this.#unmatched++
      const place = placeOf()
      const isEnough = place?.hasHandlers !== true || this.#unmatched >= ENOUGH
      if (!isEnough || performance.now() - this.#createdMs < START_MS) return
      this.isWatching = false
      if (place !== undefined) this.#guard.warnMountedTooLate(place.routes)
    })
  }
}
