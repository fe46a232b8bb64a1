import type { PolicyCheck, Refusal } from "../../decision/decision.ts"
import { REQUESTS } from "../../ground/policy.ts"

/** A kind of problem: RFC 9457 and draft-ietf-httpapi-ratelimit-headers-11, section "Problem Types". */
export interface ProblemDetails {
  readonly title: string
  readonly status: number
  /** The JSON text of type, title and status, without the closing brace. */
  readonly json: string
}

/**
 * The largest cost of a request that a rule accepts. For example, a limit of 10 with a rule cost of 3 accepts a cost
 * of at most 3.
 */
export interface LargestCost {
  /** Units that the rule takes for a request of cost 1. */
  readonly ruleCost: number
  readonly largest: number
}

const TYPES = "https://iana.org/assignments/http-problem-types#"

const QUOTA = problem(`${TYPES}quota-exceeded`, "Quota Exceeded", 429)
const ABNORMAL = problem(`${TYPES}abnormal-usage-detected`, "Abnormal Usage Detected", 429)

/** The problem that the client receives for each kind of refusal. */
export const PROBLEMS: Readonly<Record<Refusal, ProblemDetails>> = {
  quota: QUOTA,
  "in-flight": QUOTA,
  cost: QUOTA,
  penalty: ABNORMAL,
  blocked: ABNORMAL,
  denied: ABNORMAL,
  group: QUOTA,
  // "about:blank" means that the problem is fully described by its status (RFC 9457, section 4.2.1).
  "missing-field": problem("about:blank", "Bad Request", 400),
  "store-failure": problem(`${TYPES}temporary-reduced-capacity`, "Temporary Reduced Capacity", 503),
}

/** Returns the problem with another status, or the problem itself without one. */
export function withStatus(problem: ProblemDetails, status: number | undefined): ProblemDetails {
  if (status === undefined) return problem
  return { title: problem.title, status, json: problem.json.replace(/\d+$/, String(status)) }
}

/**
 * Returns what happened and what would help, in one or two sentences. `refusing` are the checks that refused.
 * `seconds` is the wait, and undefined if waiting does not help.
 */
export function problemDetail(
  refusal: Refusal,
  refusing: readonly PolicyCheck[],
  seconds: number | undefined,
  largestCost: (check: PolicyCheck) => LargestCost,
): string {
  switch (refusal) {
    case "quota":
      return `The quota is used up.${tryAgain(seconds)}`
    case "in-flight":
      return inFlightDetail(refusing)
    case "cost":
      return costDetail(refusing, largestCost)
    case "penalty":
      return `Too many requests were refused, so none is accepted for a while.${tryAgain(seconds)}`
    case "blocked":
      return `This client is blocked.${tryAgain(seconds)}`
    case "denied":
      return "Requests like this one are not accepted."
    case "group":
      return `Another service that this request needs has refused it.${tryAgain(seconds)}`
    case "missing-field":
      return missingFieldDetail(refusing)
    case "store-failure":
      return `The quota cannot be checked at the moment.${tryAgain(seconds)}`
  }
}

function problem(type: string, title: string, status: ProblemDetails["status"]): ProblemDetails {
  return { title, status, json: JSON.stringify({ type, title, status }).slice(0, -1) }
}

const DAY_S = 86_400

function tryAgain(seconds: number | undefined): string {
  if (seconds === undefined) return ""
  // People read this text, and programs read Retry-After. Round up, because an early attempt would be refused.
  if (seconds > 2 * DAY_S) return ` Try again in ${Math.ceil(seconds / DAY_S)} days.`
  return seconds === 1 ? " Try again in 1 second." : ` Try again in ${seconds} seconds.`
}

function inFlightDetail(refusing: readonly PolicyCheck[]): string {
  const { limit = 0, cost = 1 } = refusing.find(({ refusal }) => refusal === "in-flight") ?? {}
  const most = Math.floor(limit / cost)
  const already = most === 1 ? "1 request is already" : `${most} requests are already`
  return `${already} in progress, which is the most at a time. Try again when one of them has finished.`
}

function costDetail(
  refusing: readonly PolicyCheck[],
  largestCost: (check: PolicyCheck) => LargestCost,
): string {
  let amount = ""
  let largest = Number.POSITIVE_INFINITY
  for (const check of refusing) {
    if (check.refusal !== "cost") continue
    const accepts = largestCost(check)
    if (accepts.largest >= largest) continue
    largest = accepts.largest
    amount = `${check.cost / accepts.ruleCost}${check.unit === REQUESTS ? "" : ` ${check.unit}`}`
  }
  return `This request costs ${amount} and never succeeds. The largest cost that is accepted is ${largest}.`
}

function missingFieldDetail(refusing: readonly PolicyCheck[]): string {
  const fields = new Set(refusing.flatMap(({ field }) => (field === undefined ? [] : [`"${field}"`])))
  return `The request must have ${[...fields].join(" and ")} to be counted.`
}
