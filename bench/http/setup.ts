/**
 * What stands in front of the handler: nothing; two constant headers, without which no limiter can do; the least that counts
 * and tells; Sluice; or the limiter most used with the framework.
 */
export type Protection = "bare" | "headers" | "by hand" | "sluice" | "peer"

export interface Setup {
  readonly protection: Protection
  /** Requests an hour. */
  readonly limit: number
}

export const WINDOW_MS = 3_600_000

type HeaderLine = readonly [name: string, value: string]

/** The headers of "headers", as long as those that Sluice sets. */
export const HEADERS: readonly [policy: HeaderLine, limit: HeaderLine] = [
  ["ratelimit-policy", '"ip-1h";q=100000000;w=3600'],
  ["ratelimit", '"ip-1h";r=99999999;t=3600'],
]

/** What every handler answers. */
export const BODY = { hello: "world" }

/** Starts a server on a free port of the loopback interface, and yields the port. */
export type StartServer = (setup: Setup) => Promise<number>
