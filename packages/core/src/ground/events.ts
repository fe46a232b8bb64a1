import { InvalidOptionError, textOf } from "./errors.ts"

type Listener<Args extends unknown[]> = (...args: Args) => void

/** Subscribing to events: each name of `Table` with the arguments that its listeners get. */
export interface Events<Table extends Record<keyof Table, unknown[]>> {
  /**
   * Calls the listener at every event of this name from now on, after those that came before it. What it throws, or rejects
   * with where it is async, is warned of once and hurts nobody.
   * @throws InvalidOptionError where there is no such event, or the listener is no function
   */
  on<Name extends keyof Table>(name: Name, listener: (...args: Table[Name]) => void): void
  /** Calls the listener no more. One that does not listen is no mistake. */
  off<Name extends keyof Table>(name: Name, listener: (...args: Table[Name]) => void): void
}

/**
 * Events whose listeners cannot hurt the request that caused them: what a listener throws goes to `onListenerError`.
 * `has` lets the hot path skip building arguments that nobody wants.
 */
export class SafeEvents<Table extends Record<keyof Table, unknown[]>> implements Events<Table> {
  readonly #names: readonly (keyof Table & string)[]
  readonly #onListenerError: (error: unknown, name: keyof Table) => void
  #listeners: { [Name in keyof Table]?: readonly Listener<Table[Name]>[] } = {}

  /** `names` are those of all events that there are. */
  constructor(
    names: Readonly<Record<keyof Table & string, true>>,
    onListenerError: (error: unknown, name: keyof Table) => void,
  ) {
    this.#names = Object.keys(names) as (keyof Table & string)[]
    this.#onListenerError = onListenerError
  }

  on<Name extends keyof Table>(name: Name, listener: Listener<Table[Name]>): void {
    // A listener of an unknown event would never be called, and nobody would notice.
    if (!this.#isEvent(name)) {
      throw new InvalidOptionError([
        { path: "on", message: `"${textOf(name)}" is not an event`, accepted: this.#names.join(", ") },
      ])
    }
    if (typeof listener !== "function") {
      const message = `the listener of "${String(name)}" is no function`
      throw new InvalidOptionError([{ path: "on", message, accepted: "a function" }])
    }
    this.#listeners[name] = [...(this.#listeners[name] ?? []), listener]
  }

  off<Name extends keyof Table>(name: Name, listener: Listener<Table[Name]>): void {
    if (!this.#isEvent(name)) return
    this.#listeners[name] = this.#listeners[name]?.filter((one) => one !== listener)
  }

  has(name: keyof Table): boolean {
    return (this.#listeners[name]?.length ?? 0) > 0
  }

  emit<Name extends keyof Table>(name: Name, ...args: Table[Name]): void {
    for (const listener of this.#listeners[name] ?? []) {
      try {
        const yielded: unknown = listener(...args)
        // Nobody waits for an async listener, so nobody else would handle its rejection.
        if (yielded instanceof Promise) yielded.catch((error) => this.#onListenerError(error, name))
      } catch (error) {
        this.#onListenerError(error, name)
      }
    }
  }

  clear(): void {
    this.#listeners = {}
  }

  #isEvent(name: unknown): boolean {
    return this.#names.includes(name as keyof Table & string)
  }
}
