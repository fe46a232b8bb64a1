/** What stands in front of the handler: nothing, Sluice, or the limiter most used with the framework. */
export type Protection = "bare" | "sluice" | "peer"

export interface Setup {
  readonly protection: Protection
  /** Requests an hour. */
  readonly limit: number
}

export const WINDOW_MS = 3_600_000

/** What every handler answers. */
export const BODY = { hello: "world" }

/** Starts a server on a free port of the loopback interface, and yields the port. */
export type StartServer = (setup: Setup) => Promise<number>
