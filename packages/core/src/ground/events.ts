import { InvalidOptionError, textOf } from "./errors.ts"

/** Subscriptions to events. `Table` maps the name of each event to the arguments of its listeners. */
export interface Events<Table extends Record<keyof Table, unknown[]>> {
  /**
   * Calls the listener for every later event of this name, after the listeners that were added before it. If the
   * listener throws, or rejects when it is async, a warning is emitted once. Requests are not affected.
   * @throws InvalidOptionError if the event does not exist or the listener is not a function
   */
  on<Name extends keyof Table>(name: Name, listener: (...args: Table[Name]) => void): void
  /** Removes the listener. A listener that was never added is ignored. */
  off<Name extends keyof Table>(name: Name, listener: (...args: Table[Name]) => void): void
}

const NONE: readonly never[] = []

/**
 * Events whose listeners cannot make a request fail. If a listener throws, `onListenerError` receives the error. On
 * the hot path, call `has` first, so that arguments are created only for events with listeners.
 */
export class SafeEvents<Table extends Record<keyof Table, unknown[]>> implements Events<Table> {
  readonly #names: readonly (keyof Table & string)[]
  readonly #onListenerError: (error: unknown, name: keyof Table) => void
  #listeners: { [Name in keyof Table]?: readonly ((...args: Table[Name]) => void)[] } = {}

  /** The keys of `names` are the names of all events. */
  constructor(
    names: Readonly<Record<keyof Table & string, true>>,
    onListenerError: (error: unknown, name: keyof Table) => void,
  ) {
    this.#names = Object.keys(names) as (keyof Table & string)[]
    this.#onListenerError = onListenerError
  }

  on<Name extends keyof Table>(name: Name, listener: (...args: Table[Name]) => void): void {
    // Throw, because otherwise the listener of an unknown event would silently never be called.
    if (!this.#isEvent(name)) {
      throw new InvalidOptionError([
        { path: "on", message: `"${textOf(name)}" is not an event`, accepted: this.#names.join(", ") },
      ])
    }
    if (typeof listener !== "function") {
      const message = `the listener for "${String(name)}" is not a function`
      throw new InvalidOptionError([{ path: "on", message, accepted: "a function" }])
    }
    this.#listeners[name] = [...(this.#listeners[name] ?? []), listener]
  }

  off<Name extends keyof Table>(name: Name, listener: (...args: Table[Name]) => void): void {
    if (!this.#isEvent(name)) return
    this.#listeners[name] = this.#listeners[name]?.filter((one) => one !== listener)
  }

  /** True if the event has a listener. */
  has(name: keyof Table): boolean {
    return (this.#listeners[name]?.length ?? 0) > 0
  }

  /** Calls the listeners of the event. Neither throws nor rejects. */
  emit<Name extends keyof Table>(name: Name, ...args: Table[Name]): void {
    for (const listener of this.#listeners[name] ?? []) {
      try {
        this.#handle(name, listener(...args))
      } catch (error) {
        this.#onListenerError(error, name)
      }
    }
  }

  /** Calls the listeners of an event with two arguments, as `emit` does, but without allocating a list for them. */
  emitPair<Name extends keyof Table>(name: Name, one: Table[Name][0], other: Table[Name][1]): void {
    const listeners = (this.#listeners[name] ?? NONE) as readonly ((...args: unknown[]) => void)[]
    for (let i = 0; i < listeners.length; i++) {
      try {
        this.#handle(name, listeners[i]?.(one, other))
      } catch (error) {
        this.#onListenerError(error, name)
      }
    }
  }

  #handle(name: keyof Table, yielded: unknown): void {
    // Nothing awaits an async listener, so handle its rejection here.
    if (yielded instanceof Promise) yielded.catch((error) => this.#onListenerError(error, name))
  }

  /** Removes all listeners. */
  clear(): void {
    this.#listeners = {}
  }

  #isEvent(name: unknown): boolean {
    return this.#names.includes(name as keyof Table & string)
  }
}
