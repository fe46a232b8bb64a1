import { soon } from "../ground/time.ts"
import type { RequestFacts } from "./request.ts"

/** Number of requests after which it is clear whether there is a proxy that sends the header. */
const FIRST_REQUESTS = 100

/** Most of these requests that may look as expected in spite of a mistake. For example, clients can send the header. */
const MOST_EXPECTED = 5

/** Matches the paths of health checks, which load balancers send without a client: `/healthz`, `/_health`, `/api/health/live`. */
const HEALTH_PATH =
  /^(?:\/(?:status|monitor|up)|[^?#]*\/[-_.]*(?:health(?:z|[-_]?checks?)?|probe|ready(?:z|ness)?|readiness|live(?:z|ness)?|alive|ping|heartbeat))\/?(?:[?#]|$)/i
/** Matches the user agents of health checks: kube-probe, ELB-HealthChecker, GoogleHC and monitors. */
const HEALTH_AGENT = /probe|health|googlehc|uptime|pingdom|monitor|heartbeat|statuscake/i

/** Watches whether the first requests have the header with the client's address, or lack it, as expected. */
export class HeaderWatch {
  /** Number of requests left to watch; 0 as soon as the result is known. */
  left: number = FIRST_REQUESTS
  readonly #onUnexpected: (times: number, latest: RequestFacts) => void
  #expected = 0
  #latest: RequestFacts | undefined

  /** `onUnexpected` is called once with the number of unexpected requests, if nearly all are. */
  constructor(onUnexpected: (times: number, latest: RequestFacts) => void) {
    this.#onUnexpected = onUnexpected
  }

  /** Counts a request, except an unexpected health check. */
  see(facts: RequestFacts, isExpected: boolean): void {
    // Several rules read the address of a request, one right after the other.
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
