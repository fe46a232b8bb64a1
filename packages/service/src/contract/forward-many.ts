import { addressOf } from "../bounds/peers.ts"
import { type LongWork, turns } from "../bounds/turns.ts"
import type { Body, Call, CallContext } from "../calls.ts"
import { callerGone, hasLeft } from "../deciding/checking.ts"
import { RateLimiter, type ShouldForwardRequestRequest } from "../gen/sluice/v1/rate_limiter_pb.ts"
import { requireKnownToken, type Tokens } from "../registering/tokens.ts"
import { invalidArgument, StatusError, TokenError } from "../status-error.ts"
import { JsonList } from "../wire/json-list.ts"
import { statusMessage } from "../wire/status-message.ts"
import { type BatchFormat, BinaryBatch, batchInBytes, JsonBatch } from "./batch-formats.ts"
import { emptyAnswer } from "./empty-answer.ts"
import type { ForwardAnswer, ForwardAttempt, Forwarding } from "./forward.ts"
import { forwardGroup } from "./forward-group.ts"
import { TakenUnits } from "./taken-units.ts"

/** Requests to decide in one step. A turn of the event loop has 16 steps, so one turn decides at most 256 requests. */
const DECIDED_TOGETHER = 16
/** Characters of requests after which a step ends, because the step also parses the requests that it decides. */
const LENGTH_TOGETHER = 65_536
/** Responses to write in one step. Writing costs far less than deciding. */
const WRITTEN_TOGETHER = 128

/**
 * Creates the call that decides many requests in order. An invalid request receives an error in its own response. A
 * batch with more than `mostRequests` requests is refused. Reading, deciding and writing are done in steps, so that
 * other calls are answered between these steps.
 */
export function forwardMany(
  forwarding: Forwarding,
  mostRequests: number,
  tokens: Tokens,
  onWrongToken: (path: string, peer: string) => void,
): Call {
  const { name, output } = RateLimiter.method.shouldForwardRequests
  const path = `/${RateLimiter.typeName}/${name}`
  const mostCounted = 2 * mostRequests
  const answer = async (format: BatchFormat, context: CallContext): Promise<Uint8Array> => {
    requireAtMost(mostRequests, format.count)
    const { asking, token, peer, places } = context
    if (format.isAllOrNothing) {
      format.write(await forwardGroup(forwarding, requestsOf(format), context, format.isBrief))
      return format.written()
    }
    const batch = new ForwardBatch(format, forwarding, { asking, token, peer, places })
    await batch.run()
    // Report a wrong token here, because the error is inside the responses, which the server does not read.
    if (batch.hasWrongToken) onWrongToken(path, addressOf(peer))
    return format.written()
  }
  return {
    path,
    output,
    list: { name: "requests", most: mostRequests, mostCounted },
    // Here, the token may belong to any service, because each request checks the token for its own service.
    authorize: (token) => requireKnownToken(tokens, token),
    requestsIn(body: Body) {
      if (body instanceof Uint8Array) return batchInBytes(body, mostCounted).count
      return body instanceof JsonList ? body.count : 0
    },
    answerBytes: async (message, context) => answer(new BinaryBatch(message, mostCounted), context),
    answerJson: async (body, context) => answer(new JsonBatch(body), context),
  }
}

/** Maximum number of requests that are decided together, because one store call checks the rules of all of them. */
const MOST_TOGETHER = 20

function requestsOf(format: BatchFormat): readonly ShouldForwardRequestRequest[] {
  const { count } = format
  requireAtMost(MOST_TOGETHER, count)
  const requests: ShouldForwardRequestRequest[] = []
  while (requests.length < count) {
    for (const each of format.readNext()) {
      if (each instanceof StatusError) throw each
      requests.push(each)
    }
  }
  return requests
}

function requireAtMost(most: number, count: number): void {
  if (count <= most) return
  throw invalidArgument({
    field: "requests",
    description: `has ${count} requests; at most ${most} are accepted`,
  })
}

/** Replaces an attempt whose response has been written, so that the attempt can be garbage-collected. */
const WRITTEN = emptyAnswer()

/**
 * A batch that is being decided. All requests are read before the first is decided, so that a malformed batch takes
 * no units.
 */
class ForwardBatch implements LongWork {
  readonly #format: BatchFormat
  readonly #forwarding: Forwarding
  readonly #context: CallContext
  readonly #requests: (ShouldForwardRequestRequest | StatusError | undefined)[] = []
  readonly #attempts: (ForwardAttempt | Promise<ForwardAttempt>)[] = []
  readonly #taken = new TakenUnits()
  #written = 0
  /** Whether a request names a service to which the token does not belong. */
  hasWrongToken = false
  /** Whether an attempt waits for the store or in a queue. */
  #isWaiting = false

  constructor(format: BatchFormat, forwarding: Forwarding, context: CallContext) {
    this.#format = format
    this.#forwarding = forwarding
    this.#context = context
  }

  /** Resolves when all responses are written. Refunds all units if the caller receives no responses. */
  async run(): Promise<void> {
    try {
      await turns.run(this)
      if (this.#isWaiting) {
        await this.#settle()
        await turns.run(this)
      }
      this.#requireCaller()
    } catch (error) {
      await this.#settle()
      void turns.run(this.#taken)
      throw error
    }
  }

  step(): boolean {
    this.#requireCaller()
    const { count } = this.#format
    if (this.#requests.length < count) {
      this.#requests.push(...this.#format.readNext())
      return true
    }
    if (this.#attempts.length < count) {
      const end = Math.min(count, this.#attempts.length + DECIDED_TOGETHER)
      let length = 0
      while (this.#attempts.length < end && length < LENGTH_TOGETHER) length += this.#decideNext()
    }
    // Responses are written in order, so write none until the pending attempts have settled.
    if (this.#isWaiting) return this.#attempts.length < count
    const decided = this.#attempts.length
    if (decided === count || decided - this.#written >= WRITTEN_TOGETHER) this.#writeSettled()
    return this.#written < count
  }

  #writeSettled(): void {
    const end = Math.min(this.#attempts.length, this.#written + WRITTEN_TOGETHER)
    const answers = this.#attempts.slice(this.#written, end) as ForwardAttempt[]
    // Free the attempts whose responses are about to be written.
    while (this.#written < end) this.#attempts[this.#written++] = WRITTEN
    this.#format.write(answers.map(answerOf))
  }

  /** Decides the next request, and returns the length of its text. */
  #decideNext(): number {
    const index = this.#attempts.length
    const request = this.#requests[index] as ShouldForwardRequestRequest | StatusError
    this.#requests[index] = undefined
    if (request instanceof StatusError) {
      this.#attempts.push(request)
      return 0
    }
    const attempt = this.#forwarding.attempt(request, this.#context, this.#format.isBrief, this.#taken)
    if (attempt instanceof Promise) this.#isWaiting = true
    else if (attempt instanceof TokenError) this.hasWrongToken = true
    this.#attempts.push(attempt)
    return request.request.length
  }

  #requireCaller(): void {
    if (hasLeft(this.#context.asking)) throw callerGone()
  }

  /**
   * Awaits the attempts one after another. `Promise.all` would not be faster, because most attempts settle with the
   * same store reply, and would allocate three objects for each attempt.
   */
  async #settle(): Promise<void> {
    for (let i = 0; i < this.#attempts.length; i++) {
      const attempt = this.#attempts[i]
      if (attempt instanceof Promise) this.#attempts[i] = await attempt
    }
    this.#isWaiting = false
  }
}

/**
 * Returns the response of an attempt. Throws an error that is not a StatusError, because a fault of the service fails
 * the whole call.
 */
function answerOf(attempt: ForwardAttempt): ForwardAnswer {
  if (!(attempt instanceof Error)) return attempt
  if (!(attempt instanceof StatusError)) throw attempt
  return { ...emptyAnswer(), error: statusMessage(attempt) }
}
