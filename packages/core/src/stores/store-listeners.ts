import { inspect } from "node:util"

/** The listeners of a store. If a listener throws or rejects, a process warning is emitted. Others are not affected. */
export class StoreListeners<Event> {
  readonly #title: string
  readonly #listeners = new Set<(event: Event) => void>()

  /** `title` names the store in warnings: "the memory store". */
  constructor(title: string) {
    this.#title = title
  }

  /** Calls the listener for every later event. Returns the function that stops this. */
  add(listener: (event: Event) => void): () => void {
    // Create a new function, so that a listener that is added twice must be stopped twice.
    const subscription = (event: Event) => listener(event)
    this.#listeners.add(subscription)
    return () => this.#listeners.delete(subscription)
  }

  emit(event: Event): void {
    for (const listener of this.#listeners) {
      try {
        const returned: unknown = listener(event)
        // Nothing awaits an async listener, so handle its rejection here.
        if (returned instanceof Promise) returned.catch((error: unknown) => this.#warn(error))
      } catch (error) {
        this.#warn(error)
      }
    }
  }

  clear(): void {
    this.#listeners.clear()
  }

  #warn(error: unknown): void {
    process.emitWarning(`A listener of ${this.#title} failed: ${inspect(error)}`)
  }
}
