/**
 * The code that runs before the handler: nothing, two constant headers, a constant refusal, the cheapest counter with
 * correct headers, Sluice, or the framework's most popular limiter. Every limiter sends at least two headers.
 */
export type Protection = "bare" | "headers" | "refusal" | "by hand" | "sluice" | "peer"

export interface Setup {
  readonly protection: Protection
  /** Requests per hour. */
  readonly limit: number
}

export const WINDOW_MS = 3_600_000

type HeaderLine = readonly [name: string, value: string]

/** The headers of "headers", which are as long as the headers of Sluice. */
export const HEADERS: readonly [policy: HeaderLine, limit: HeaderLine] = [
  ["ratelimit-policy", '"ip-1h";q=100000000;w=3600'],
  ["ratelimit", '"ip-1h";r=99999999;t=3600'],
]

/** The headers of "refusal", which Sluice would send in the middle of the hour. */
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

/** The response body of every handler. */
export const BODY = { hello: "world" }

/** Starts a server on a free port of the loopback interface, and resolves to the port. */
export type StartServer = (setup: Setup) => Promise<number>
