import { type Answer, header } from "./ask.ts"

/** The results so far of one client of one server. Times are epoch milliseconds. */
export interface Tally {
  readonly framework: string
  readonly client: string
  /** Name of the rule that limits this client. */
  readonly rule: string
  limit: number
  windowMs: number
  sent: number
  admitted: number
  refused: number
  /** Remaining units according to the last response. */
  remaining: number
  /** The time at which the client may retry, according to the last refusal. 0 before the first refusal. */
  retryAtMs: number
  /**
   * Remaining units according to the last admitted response. A client that sends one request at a time must be
   * granted all of these units.
   */
  owed: number
  firstSentMs: number
  lastAnsweredMs: number
  firstRefusal: Answer | undefined
  /** The time from Retry-After, and whether the client was admitted then. Set only for a client that waited. */
  waited: { readonly seconds: number; isAdmitted: boolean | undefined } | undefined
  /** The problems, which are results that contradict the limits. */
  readonly broken: string[]
}

export function newTally(framework: string, client: string, rule: string): Tally {
  return {
    framework,
    client,
    rule,
    limit: 0,
    windowMs: 0,
    sent: 0,
    admitted: 0,
    refused: 0,
    remaining: 0,
    retryAtMs: 0,
    owed: 0,
    firstSentMs: 0,
    lastAnsweredMs: 0,
    firstRefusal: undefined,
    waited: undefined,
    broken: [],
  }
}

/** Adds a response to the tally, and records a problem if a required header is missing. */
export function record(tally: Tally, answer: Answer, nowMs: number): void {
  const { rule, broken } = tally
  tally.lastAnsweredMs = nowMs
  const policy = header(answer, "ratelimit-policy")?.match(`"${rule}";q=(\\d+);w=(\\d+)`)
  const left = header(answer, "ratelimit")?.match(`"${rule}";r=(\\d+)`)
  if (policy == null || left == null) broken.push(`a response says nothing of "${rule}"`)
  tally.limit = Number(policy?.[1] ?? 0)
  tally.windowMs = Number(policy?.[2] ?? 0) * 1000
  tally.remaining = Number(left?.[1] ?? 0)

  if (answer.status === 200) {
    tally.admitted++
    tally.owed = tally.remaining
    return
  }
  if (answer.status !== 429) {
    broken.push(`a response was ${answer.statusLine}`)
    return
  }
  tally.refused++
  tally.firstRefusal ??= answer
  const seconds = retryAfterSeconds(answer)
  if (seconds < 1) broken.push("a refusal does not say when to come back")
  tally.retryAtMs = nowMs + seconds * 1000
}

/** Returns the seconds of Retry-After (RFC 9110, section 10.2.3), or 0 if the header is absent. */
export function retryAfterSeconds(answer: Answer): number {
  const text = header(answer, "retry-after") ?? ""
  return /^\d+$/.test(text) ? Number(text) : 0
}
