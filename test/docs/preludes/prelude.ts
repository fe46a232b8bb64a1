/** An app that is being served. `close` ends it immediately. */
export interface Served {
  readonly url: string
  close(): Promise<void>
}

/** The exports of a prelude, which is a module of this folder. */
export interface Prelude {
  /** Functions that create the values which a block assumes, by name. They are called when the block uses the name. */
  readonly given: Readonly<Record<string, () => unknown>>
  /** Serves the app of the block on a free port. Routes that are not registered respond with 200. */
  readonly serve?: (app: never) => Promise<Served>
}
