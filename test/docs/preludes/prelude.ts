/** A running app. `close` stops the app immediately. */
export interface Served {
  readonly url: string
  close(): Promise<void>
}

/** The exports of a prelude, which is a module of this folder. */
export interface Prelude {
  /**
   * Functions by name, which create the values that a block assumes. A function is called when the block uses its
   * name.
   */
  readonly given: Readonly<Record<string, () => unknown>>
  /** Serves the app of the block on a free port. Routes that are not registered respond with 200. */
  readonly serve?: (app: never) => Promise<Served>
}
