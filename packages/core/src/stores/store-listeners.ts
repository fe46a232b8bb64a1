import { inspect } from "node:util"

/** The listeners of a store. A listener that throws or rejects causes a process warning and disturbs nobody else. */
export class StoreListeners<Event> {
  readonly #title: string
  readonly #listeners = new Set<(event: Event) => void>()

  /** `title` names the store in warnings: "the memory store". */
  constructor(title: string) {
    this.#title = title
  }

  /** Calls the listener at every event from now on. Returns the function that stops this. */
  add(listener: (event: Event) => void): () => void {
    // A function of its own, so that a listener that is added twice is also stopped twice.
    const subscription = (event: Event) => listener(event)
    this.#listeners.add(subscription)
    return () => this.#listeners.delete(subscription)
  }

  emit(event: Event): void {
    for (const listener of this.#listeners) {
      try {
        const returned: unknown = listener(event)
        // Nobody waits for an async listener, so nobody else would handle its rejection.
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
