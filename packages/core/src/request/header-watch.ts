import { soon } from "../ground/time.ts"
import type { RequestFacts } from "./request.ts"

/** Number of requests after which it is clear whether a proxy sends the header. */
const FIRST_REQUESTS = 100

/**
 * Number of these requests that may look correct although the configuration is wrong. For example, clients can send the
 * header themselves.
 */
const MOST_EXPECTED = 5

/**
 * Matches the paths of health checks, which load balancers send themselves: `/healthz`, `/_health`, `/api/health/live`.
 */
const HEALTH_PATH =
  /^(?:\/(?:status|monitor|up)|[^?#]*\/[-_.]*(?:health(?:z|[-_]?checks?)?|probe|ready(?:z|ness)?|readiness|live(?:z|ness)?|alive|ping|heartbeat))\/?(?:[?#]|$)/i
/** Matches the user agents of health checks: kube-probe, ELB-HealthChecker, GoogleHC and monitors. */
const HEALTH_AGENT = /probe|health|googlehc|uptime|pingdom|monitor|heartbeat|statuscake/i

/** Checks whether the first requests have, or lack, the header with the client's address as expected. */
export class HeaderWatch {
  /** Number of requests that remain to be checked; 0 as soon as the result is known. */
  left: number = FIRST_REQUESTS
  readonly #onUnexpected: (times: number, latest: RequestFacts) => void
  #expected = 0
  #latest: RequestFacts | undefined

  /** If nearly all requests are unexpected, `onUnexpected` is called once with the number of these requests. */
  constructor(onUnexpected: (times: number, latest: RequestFacts) => void) {
    this.#onUnexpected = onUnexpected
  }

  /** Counts a request, except an unexpected health check. */
  see(facts: RequestFacts, isExpected: boolean): void {
    // Count each request once, although several rules may read its address one after the other.
    if (this.#latest === facts || (!isExpected && isHealthCheck(facts))) return
    this.#latest = facts
    soon(() => {
      this.#latest = undefined
    })
    this.left -= 1
    if (isExpected) this.#expected += 1
    if (this.#expected > MOST_EXPECTED) this.left = 0
    else if (this.left === 0) this.#onUnexpected(FIRST_REQUESTS - this.#expected, facts)
  }
}

function isHealthCheck({ url, headers }: RequestFacts): boolean {
  return matches(HEALTH_PATH, url) || matches(HEALTH_AGENT, headers?.["user-agent"])
}

function matches(pattern: RegExp, text: unknown): boolean {
  return typeof text === "string" && pattern.test(text)
}
