import type { Decision, Outcome } from "@sluice/core"
import type { Asking } from "../calls.ts"
import { type AskedRequest, factsOf, NOTHING } from "../deciding/asked-request.ts"
import { callerGone, giveBack, hasLeft } from "../deciding/checking.ts"
import { notAnObject, readRequestText } from "../deciding/request-text.ts"
import type { ServiceGuard, ServiceGuards } from "../deciding/service-guards.ts"
import type { Unregistered } from "../deciding/unregistered.ts"
import type {
  ShouldForwardRequestRequest,
  ShouldForwardRequestResponse,
} from "../gen/sluice/v1/rate_limiter_pb.ts"
import { invalidArgument } from "../status-error.ts"
import { emptyAnswer } from "./empty-answer.ts"
import { serviceName } from "./service-name.ts"

type Answer = ShouldForwardRequestResponse

/** Decides whether requests may be forwarded, in the words of the contract. */
export class Forwarding {
  readonly #guards: ServiceGuards
  readonly #unregistered: Unregistered

  constructor(guards: ServiceGuards, unregistered: Unregistered) {
    this.#guards = guards
    this.#unregistered = unregistered
  }

  /**
   * Answers with a value where the rules are known and the store answers with one. What it has taken is given back where
   * nobody waits for the answer any more. Throws or rejects with StatusError where the request is wrong. `brief` leaves out
   * headers and body.
   */
  decide(request: ShouldForwardRequestRequest, asking: Asking, brief: boolean): Answer | Promise<Answer> {
    const service = serviceName(request)
    const known = readRequestText(request.request)
    const cost = unitsOf(request.cost)
    const ask = (found: ServiceGuard | undefined): Answer | Promise<Answer> => {
      if (found === undefined) return this.#answerUnknown(service)
      if (known === undefined && !found.readsNothing) throw notAnObject()
      const asked = { known: known ?? NOTHING, facts: factsOf(known ?? NOTHING), cost }
      return request.peek ? peeked(asked, found) : decided(asked, found, asking, brief)
    }
    const found = this.#guards.of(service)
    return found instanceof Promise ? found.then(ask) : ask(found)
  }

  #answerUnknown(service: string): Answer {
    const refusal = this.#unregistered.refusal(service)
    if (refusal === undefined) return { ...emptyAnswer(), shouldForward: true }
    const { status, contentType, body } = refusal
    return { ...emptyAnswer(), statusCode: status, headers: { "Content-Type": contentType }, body }
  }
}

async function peeked(asked: AskedRequest, { guard }: ServiceGuard): Promise<Answer> {
  const { cost } = asked
  return told(await guard.limiter.peek(asked, { cost }))
}

function decided(
  asked: AskedRequest,
  found: ServiceGuard,
  asking: Asking,
  brief: boolean,
): Answer | Promise<Answer> {
  const outcome = found.guard.check(asked.facts, asked, asking)
  return outcome instanceof Promise
    ? outcome.then((made) => answered(made, found, asking, brief))
    : answered(outcome, found, asking, brief)
}

function answered(outcome: Outcome | undefined, found: ServiceGuard, asking: Asking, brief: boolean): Answer {
  // Held, and gone: nothing has been taken.
  if (outcome === undefined) throw callerGone()
  if (hasLeft(asking)) giveBack(found, outcome)
  const { decision, rejection } = outcome
  const answer = told(decision)
  if (rejection !== undefined) answer.statusCode = rejection.status
  if (brief) return answer
  answer.headers = headersOf(outcome)
  if (rejection !== undefined) answer.body = rejection.body
  return answer
}

function told(decision: Decision): Answer {
  const { allowed, policy, retryAfterMs } = decision
  const answer = emptyAnswer()
  answer.shouldForward = allowed
  // Where no rule applied there is no limit, and no number for that.
  if (policy !== "") {
    answer.policy = policy
    answer.limit = BigInt(decision.limit)
    answer.remaining = BigInt(decision.remaining)
    answer.resetAfterMs = BigInt(decision.resetAfterMs)
  }
  if (decision.degraded) answer.degraded = true
  if (decision.delayMs > 0) answer.delayMs = BigInt(decision.delayMs)
  if (decision.overLimit) answer.overLimit = true
  if (!allowed && retryAfterMs !== Number.POSITIVE_INFINITY) answer.retryAfterMs = BigInt(retryAfterMs)
  if (decision.rejectionMessage !== undefined) answer.rejectionMessage = decision.rejectionMessage
  if (decision.shadowed.length > 0) answer.shadowed = [...decision.shadowed]
  return answer
}

function headersOf({ headers, rejection }: Outcome): Record<string, string> {
  const map: Record<string, string> = {}
  for (const [name, value] of headers) map[name] = value
  for (const [name, value] of rejection?.headers ?? []) map[name] = value
  return map
}

function unitsOf(cost: bigint | undefined): number {
  if (cost === undefined) return 1
  if (cost <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(cost)
  throw invalidArgument({ field: "cost", description: `is greater than ${Number.MAX_SAFE_INTEGER}` })
}
