/** Where an app is served: `close` ends it at once. */
export interface Served {
  readonly url: string
  close(): Promise<void>
}

/** What a prelude is: a module of this folder. */
export interface Prelude {
  /** By name, what makes the value that a block takes for granted; called where the block names it. */
  readonly given: Readonly<Record<string, () => unknown>>
  /** Serves the app that the block has set up, on a free port; a route that nobody has registered answers 200. */
  readonly serve?: (app: never) => Promise<Served>
}
