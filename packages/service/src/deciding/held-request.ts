import type { CallPlaces } from "../bounds/in-flight.ts"
import { turns } from "../bounds/turns.ts"
import type { Asking } from "../calls.ts"
import type { StatusError } from "../status-error.ts"
import { callerGone } from "./checking.ts"
import type { ServiceGuard } from "./service-guards.ts"

/**
 * A caller whose requests a rule may hold. A guard listens to its caller only while it holds a request, so each
 * listener represents a held request that needs a place. If no place is free, this object reports that the caller has
 * disconnected, so the guard releases the request.
 */
class HeldCaller implements Asking {
  refusal: StatusError | undefined
  readonly #caller: Asking
  readonly #places: CallPlaces
  readonly #service: string
  /** Maps the listener of each held request to the listener that was added to the caller. */
  readonly #held = new Map<() => void, () => void>()

  constructor(caller: Asking, places: CallPlaces, service: string) {
    this.#caller = caller
    this.#places = places
    this.#service = service
  }

  get closed(): boolean {
    return this.refusal !== undefined || this.#caller.closed === true
  }

  get destroyed(): boolean {
    return this.#caller.destroyed === true
  }

  get stream(): unknown {
    return this.#caller.stream
  }

  get req(): NonNullable<Asking["req"]> {
    return this.#caller.req as NonNullable<Asking["req"]>
  }

  once(event: "close", listener: () => void): void {
    try {
      this.#places.hold(this.#service)
    } catch (error) {
      this.refusal = error as StatusError
      listener()
      return
    }
    const onClose = (): void => void turns.run({ step: () => this.#release(listener) })
    this.#held.set(listener, onClose)
    this.#caller.once(event, onClose)
  }

  off(event: "close", listener: () => void): void {
    const onClose = this.#held.get(listener)
    if (onClose === undefined) return
    this.#held.delete(listener)
    this.#places.release(this.#service)
    this.#caller.off(event, onClose)
  }

  /**
   * Releases a request if it is still held. Runs as a task of `turns`, because a connection may close while thousands
   * of its requests are held.
   */
  #release(listener: () => void): false {
    if (this.#held.has(listener)) listener()
    return false
  }
}

/**
 * Returns the caller to pass to a guard. If a rule of the guard may hold requests, the caller is wrapped, so that
 * held requests are counted.
 */
export function heldBy({ mayHold, service }: ServiceGuard, caller: Asking, places: CallPlaces): Asking {
  return mayHold ? new HeldCaller(caller, places, service) : caller
}

/**
 * Creates the error for a held request without an outcome. Either its caller has disconnected, or no place was free.
 */
export function noOutcome(caller: Asking): StatusError {
  return (caller instanceof HeldCaller ? caller.refusal : undefined) ?? callerGone()
}
