import type { Decision } from "@sluice/core"
import type { Outcome } from "@sluice/core/adapters"
import type { CallPlaces } from "../bounds/in-flight.ts"
import type { Asking, CallContext } from "../calls.ts"
import { type AskedRequest, factsOf, type KnownFacts, NOTHING } from "../deciding/asked-request.ts"
import { hasLeft, refund } from "../deciding/checking.ts"
import { heldBy, noOutcome } from "../deciding/held-request.ts"
import { notAnObject, readRequestText } from "../deciding/request-text.ts"
import type { ServiceGuard, ServiceGuards } from "../deciding/service-guards.ts"
import type { Unregistered } from "../deciding/unregistered.ts"
import type {
  ShouldForwardRequestRequest,
  ShouldForwardRequestResponse,
} from "../gen/sluice/v1/rate_limiter_pb.ts"
import { requireTokenOf, type Tokens } from "../registering/tokens.ts"
import { invalidArgument } from "../status-error.ts"
import { emptyAnswer } from "./empty-answer.ts"
import type { ServiceReservations } from "./reservations.ts"
import { serviceName } from "./service-name.ts"
import type { TakenUnits } from "./taken-units.ts"
import { BESIDES_COST, exact, NO_UNITS, type Units, unitsOf } from "./units.ts"

/** The response to one request. */
export type ForwardAnswer = ShouldForwardRequestResponse
/** A response, or the error that prevented it. */
export type ForwardAttempt = ForwardAnswer | Error

/** A parsed request for a decision. */
interface Question {
  readonly service: string
  /** Undefined if the request is not a JSON object. This is an error only if the rules read fields of the request. */
  readonly known: KnownFacts | undefined
  readonly cost: number
  readonly units: Units
  readonly isPeek: boolean
  /** Whether the response omits headers and body. */
  readonly isBrief: boolean
  /** Reserves what the request takes. Undefined if the caller will not say when the request has ended. */
  readonly reservations: ServiceReservations | undefined
  readonly asking: Asking
  readonly places: CallPlaces
  /** Collects the units that a batch has taken. Undefined for a single request. */
  readonly taken: TakenUnits | undefined
}

/** A request of a group. */
export interface ForwardMember {
  readonly question: Question
  /** The guard of the service, and the request to pass to it. Undefined if the service has no rules. */
  readonly counted?: { readonly found: ServiceGuard; readonly asked: AskedRequest }
  /** The response if the service has no rules. This response applies unless another request of the group is refused. */
  readonly uncounted?: ForwardAnswer
}

const ONE_REQUEST = {
  ...{ cost: 1, units: NO_UNITS, isPeek: false, isBrief: false },
  ...{ reservations: undefined, taken: undefined },
} as const

/** Decides whether requests may be forwarded, and returns the response messages of the contract. */
export class Forwarding {
  readonly #guards: ServiceGuards
  readonly #unregistered: Unregistered
  readonly #tokens: Tokens
  readonly #reservations: ServiceReservations

  /** If `tokens` is not empty, callers need a token. */
  constructor(
    guards: ServiceGuards,
    unregistered: Unregistered,
    tokens: Tokens,
    reservations: ServiceReservations,
  ) {
    this.#guards = guards
    this.#unregistered = unregistered
    this.#tokens = tokens
    this.#reservations = reservations
  }

  /**
   * Decides one request. Returns a value if the rules are loaded and the store returns a value, and otherwise a
   * promise. Refunds the units if the caller no longer waits for the response. Throws or rejects with StatusError for
   * an invalid request.
   */
  decide(request: ShouldForwardRequestRequest, context: CallContext): ForwardAnswer | Promise<ForwardAnswer> {
    return settled(this.attempt(request, context, false))
  }

  /**
   * Decides one request of a batch. Returns or resolves with the error of an invalid request instead of throwing it.
   * A rejection would be unhandled while the batch waits for another request. If `isBrief` is true, the response
   * omits headers and body. Adds the units that the request takes to `taken`.
   */
  attempt(
    request: ShouldForwardRequestRequest,
    context: CallContext,
    isBrief: boolean,
    taken?: TakenUnits,
  ): ForwardAttempt | Promise<ForwardAttempt> {
    try {
      return this.#ask(this.#read(request, context, isBrief, taken), context)
    } catch (error) {
      return errorOf(error)
    }
  }

  /** Decides one request whose description has been read. Otherwise works like `decide`. */
  decideKnown(
    service: string,
    known: KnownFacts,
    context: CallContext,
  ): ForwardAnswer | Promise<ForwardAnswer> {
    const { asking, places } = context
    const question = { ...{ service, known, asking, places }, ...ONE_REQUEST }
    return settled(this.#ask(question, context))
  }

  /**
   * Reads a request of a group, and finds the guard of its service. Rejects with StatusError if the request is
   * invalid.
   */
  async member(
    request: ShouldForwardRequestRequest,
    context: CallContext,
    isBrief: boolean,
  ): Promise<ForwardMember> {
    const question = this.#read(request, context, isBrief, undefined)
    if (!this.#tokens.isEmpty) requireTokenOf(question.service, this.#tokens, context.token)
    if (question.isPeek)
      throw invalidArgument({ field: "peek", description: "cannot be combined with all_or_nothing" })
    const found = await this.#guards.of(question.service)
    if (found !== undefined) return { question, counted: { found, asked: askedOf(question, found) } }
    return { question, uncounted: this.#answerUnknown(question.service) }
  }

  /** Reads the request for a decision. Throws StatusError if it is invalid. */
  #read(
    request: ShouldForwardRequestRequest,
    { asking, places }: CallContext,
    isBrief: boolean,
    taken: TakenUnits | undefined,
  ): Question {
    return {
      service: serviceName(request),
      known: readRequestText(request.request),
      cost: request.cost === undefined ? 1 : exact(request.cost, "cost"),
      units: unitsOf(request.units, "units", BESIDES_COST),
      isPeek: request.peek,
      isBrief,
      reservations: request.reserve ? this.#reservations : undefined,
      asking,
      places,
      taken,
    }
  }

  #ask(question: Question, { token, places }: CallContext): ForwardAttempt | Promise<ForwardAttempt> {
    if (!this.#tokens.isEmpty) requireTokenOf(question.service, this.#tokens, token)
    // A batch has already reserved places for all of its requests.
    if (question.taken === undefined) places.serve(question.service)
    const found = this.#guards.of(question.service)
    return found instanceof Promise
      ? found.then((later) => this.#answer(question, later)).catch(errorOf)
      : this.#answer(question, found)
  }

  #answer(question: Question, found: ServiceGuard | undefined): ForwardAnswer | Promise<ForwardAttempt> {
    if (found === undefined) return this.#answerUnknown(question.service)
    const asked = askedOf(question, found)
    return question.isPeek ? peeked(asked, found).catch(errorOf) : decided(asked, found, question)
  }

  #answerUnknown(service: string): ForwardAnswer {
    const refusal = this.#unregistered.refusal(service)
    if (refusal === undefined) return { ...emptyAnswer(), shouldForward: true }
    const { status, contentType, body } = refusal
    return { ...emptyAnswer(), statusCode: status, headers: { "Content-Type": contentType }, body }
  }
}

/** Returns the request for the guard. Throws StatusError if the rules read fields and the request is not an object. */
function askedOf(
  { known = NOTHING, cost, units, reservations }: Question,
  { readsNothing }: ServiceGuard,
): AskedRequest {
  if (known === NOTHING && !readsNothing) throw notAnObject()
  return { known, facts: factsOf(known, reservations === undefined), cost, units }
}

async function peeked(asked: AskedRequest, { guard }: ServiceGuard): Promise<ForwardAnswer> {
  return told(await guard.limiter.peek(asked))
}

function decided(
  asked: AskedRequest,
  found: ServiceGuard,
  question: Question,
): ForwardAnswer | Promise<ForwardAttempt> {
  const asking = heldBy(found, question.asking, question.places)
  const outcome = found.guard.check(asked.facts, asked, asking)
  if (!(outcome instanceof Promise)) return answered(outcome, found, question, asking)
  return outcome.then((made) => {
    try {
      return answered(made, found, question, asking)
    } catch (error) {
      return errorOf(error)
    }
  }, errorOf)
}

export function answered(
  outcome: Outcome | undefined,
  found: ServiceGuard,
  { isBrief, reservations, taken }: Question,
  asking: Asking,
): ForwardAnswer {
  if (outcome === undefined) throw noOutcome(asking)
  const { decision, rejection } = outcome
  const answer = told(decision)
  if (hasLeft(asking)) refund(found, decision)
  else {
    if (decision.allowed) reservations?.reserve(found, decision, answer)
    taken?.add(found, decision, answer.reservation)
  }
  if (rejection !== undefined) answer.statusCode = rejection.status
  if (isBrief) return answer
  answer.headers = headersOf(outcome)
  if (rejection !== undefined) answer.body = rejection.body
  return answer
}

export function errorOf(thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new Error("A value that is not an Error was thrown.", { cause: thrown })
}

function settled(attempt: ForwardAttempt | Promise<ForwardAttempt>): ForwardAnswer | Promise<ForwardAnswer> {
  return attempt instanceof Promise ? attempt.then(orThrow) : orThrow(attempt)
}

function orThrow(attempt: ForwardAttempt): ForwardAnswer {
  if (attempt instanceof Error) throw attempt
  return attempt
}

function told(decision: Decision): ForwardAnswer {
  const { allowed, policy, retryAfterMs } = decision
  const answer = emptyAnswer()
  answer.shouldForward = allowed
  // If no rule applied, there is no limit and the numbers stay 0.
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
