import { inspect } from "node:util"
import { SafeEvents } from "../ground/events.ts"
import { emitWarning } from "../ground/warnings.ts"

/** The listeners of a store. If a listener throws or rejects, a process warning is emitted. Other listeners are not affected. */
export class StoreListeners<Event> {
  readonly #events: SafeEvents<{ event: [Event] }>

  /** `title` names the store in warnings: "the memory store". */
  constructor(title: string) {
    this.#events = new SafeEvents<{ event: [Event] }>({ event: true }, (error) =>
      emitWarning(`A listener of ${title} failed: ${inspect(error)}`),
    )
  }

  /** Calls the listener for every later event. Returns the function that removes the listener. */
  add(listener: (event: Event) => void): () => void {
    // Create a new function, so that a listener that is added twice must be stopped twice.
    const subscription = (event: Event) => listener(event)
    this.#events.on("event", subscription)
    return () => this.#events.off("event", subscription)
  }

  /** Calls every listener. */
  emit(event: Event): void {
    this.#events.emit("event", event)
  }

  /** Forgets all listeners. */
  clear(): void {
    this.#events.clear()
  }
}
