import type { GateStatus } from "./gate-status.ts"
import { check } from "./options.ts"

/** The events of a paced fetch, by name. */
export interface PaceEvents {
  /** A call joins the line. */
  readonly wait: GateStatus
  /**
   * A response contains the remaining units for the first time, or again after a block. Also emitted when responses
   * turn out to contain no rate limit headers.
   */
  readonly learned: GateStatus
  /** A server has refused a call. */
  readonly refused: {
    /**
     * The key whose calls must wait. This is the key of the call, or the key of the origin that a redirect has led
     * to.
     */
    readonly key: string
    /** The status of the response, such as 429. */
    readonly status: number
    /** The milliseconds that the server asks to wait. Undefined if its response contains no wait. */
    readonly waitMs: number | undefined
    /** Whether the call is sent again. Otherwise, the caller gets the response. */
    readonly isRetried: boolean
  }
}

type Listeners = { readonly [Name in keyof PaceEvents]: Set<(event: PaceEvents[Name]) => void> }

/** The listeners of a paced fetch. */
export class PaceListeners {
  readonly #listeners: Listeners = { wait: new Set(), refused: new Set(), learned: new Set() }

  /**
   * Adds a listener. Returns a function that removes the listener.
   * @throws {@link PaceError} with the code SLUICE_INVALID_OPTION
   */
  on<Name extends keyof PaceEvents>(name: Name, listener: (event: PaceEvents[Name]) => void): () => void {
    check(Object.keys(this.#listeners).includes(name), "on", name, "wait, refused or learned")
    check(typeof listener === "function", "on", listener, "a function of the event")
    const listeners: Set<(event: PaceEvents[Name]) => void> = this.#listeners[name]
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  /** Calls the listeners. An error of a listener cannot stop a call, so it becomes an uncaught error. */
  emit<Name extends keyof PaceEvents>(name: Name, event: PaceEvents[Name]): void {
    const listeners: Set<(event: PaceEvents[Name]) => void> = this.#listeners[name]
    for (const listener of listeners) {
      try {
        listener(event)
      } catch (error) {
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }
}
