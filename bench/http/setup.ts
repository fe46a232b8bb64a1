/**
 * What stands in front of the handler: nothing; two constant headers, without which no limiter can do; a constant refusal; the
 * least that counts and tells; Sluice; or the limiter most used with the framework.
 */
export type Protection = "bare" | "headers" | "refusal" | "by hand" | "sluice" | "peer"

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

/** What "refusal" answers with: what Sluice does in the middle of the hour. */
export const REFUSAL_HEADERS: readonly HeaderLine[] = [
  ["ratelimit-policy", '"ip-1h";q=1;w=3600'],
  ["ratelimit", '"ip-1h";r=0;t=1800'],
  ["retry-after", "1800"],
  ["cache-control", "no-store"],
  ["content-type", "application/problem+json"],
]
export const REFUSAL_BODY = JSON.stringify({
  type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
  title: "Quota Exceeded",
  status: 429,
  detail: "The quota is used up. Try again in 1800 seconds.",
  "violated-policies": ["ip-1h"],
})

/** What every handler answers. */
export const BODY = { hello: "world" }

/** Starts a server on a free port of the loopback interface, and yields the port. */
export type StartServer = (setup: Setup) => Promise<number>
