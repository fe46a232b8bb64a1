import { type Answer, header } from "./ask.ts"

/** What one client of one server has met so far. Times are epoch milliseconds. */
export interface Tally {
  readonly framework: string
  readonly client: string
  /** The rule that binds this client's requests, by name. */
  readonly rule: string
  limit: number
  windowMs: number
  sent: number
  admitted: number
  refused: number
  /** As the last answer says. */
  remaining: number
  /** When the client may come back, as the last refusal says; 0 before there is one. */
  retryAtMs: number
  /** Units that were left when the client was last told. A client that asks one by one is owed them. */
  owed: number
  firstSentMs: number
  lastAnsweredMs: number
  firstRefusal: Answer | undefined
  /** Set for a client that waited: how long it was told to, and whether it was admitted then. */
  waited: { readonly seconds: number; isAdmitted: boolean | undefined } | undefined
  /** What was not as promised. */
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

/** Takes an answer into the tally: what it says of the rule, and whether it says what it must. */
export function record(tally: Tally, answer: Answer, nowMs: number): void {
  const { rule, broken } = tally
  tally.lastAnsweredMs = nowMs
  const policy = header(answer, "ratelimit-policy")?.match(`"${rule}";q=(\\d+);w=(\\d+)`)
  const left = header(answer, "ratelimit")?.match(`"${rule}";r=(\\d+)`)
  if (policy == null || left == null) broken.push(`an answer says nothing of "${rule}"`)
  tally.limit = Number(policy?.[1] ?? 0)
  tally.windowMs = Number(policy?.[2] ?? 0) * 1000
  tally.remaining = Number(left?.[1] ?? 0)

  if (answer.status === 200) {
    tally.admitted++
    tally.owed = tally.remaining
    return
  }
  if (answer.status !== 429) {
    broken.push(`an answer was ${answer.statusLine}`)
    return
  }
  tally.refused++
  tally.firstRefusal ??= answer
  const seconds = retryAfterSeconds(answer)
  if (seconds < 1) broken.push("a refusal does not say when to come back")
  tally.retryAtMs = nowMs + seconds * 1000
}

/** The seconds of Retry-After (RFC 9110, section 10.2.3); 0 when there are none. */
export function retryAfterSeconds(answer: Answer): number {
  const text = header(answer, "retry-after") ?? ""
  return /^\d+$/.test(text) ? Number(text) : 0
}
