import type { Body, Call, CallContext } from "../calls.ts"
import { callerGone, hasLeft } from "../deciding/checking.ts"
import { RateLimiter, type ShouldForwardRequestRequest } from "../gen/sluice/v1/rate_limiter_pb.ts"
import { addressOf } from "../peers.ts"
import { requireKnownToken, type Tokens } from "../registering/tokens.ts"
import { invalidArgument, StatusError, TokenError } from "../status-error.ts"
import { statusMessage } from "../status-message.ts"
import { type LongWork, turns } from "../turns.ts"
import { type BatchFormat, BinaryBatch, batchInBytes, batchInJson, JsonBatch } from "./batch-formats.ts"
import { emptyAnswer } from "./empty-answer.ts"
import type { ForwardAnswer, ForwardAttempt, Forwarding } from "./forward.ts"
import { TakenUnits } from "./taken-units.ts"

/** Requests that are decided in one step, of which a turn of the event loop has 16: so a turn decides at most 256. */
const DECIDED_TOGETHER = 16
/** Requests that are read, or answers that are written, in one step. Both cost far less than decisions. */
const READ_TOGETHER = 128
const WRITTEN_TOGETHER = 128

/**
 * The call that decides many requests in order. A request that is wrong has its error in its own answer. Reading, deciding and
 * writing are done in steps between which other calls are answered. A batch with more than `mostRequests` is refused.
 */
export function forwardMany(
  forwarding: Forwarding,
  mostRequests: number,
  tokens: Tokens,
  onWrongToken: (path: string, peer: string) => void,
): Call {
  const { name, output } = RateLimiter.method.shouldForwardRequests
  const path = `/${RateLimiter.typeName}/${name}`
  const answer = async (format: BatchFormat, context: CallContext): Promise<Uint8Array> => {
    requireAtMost(mostRequests, format.count)
    const { asking, token, peer, places } = context
    // Whether it is the token of a request's service is said in the answer to the request.
    requireKnownToken(tokens, token)
    const batch = new ForwardBatch(format, forwarding, { asking, token, peer, places })
    await batch.run()
    // The error is in the answers to requests, which the door does not read.
    if (batch.hasWrongToken) onWrongToken(path, addressOf(peer))
    return format.written()
  }
  return {
    path,
    output,
    requestsIn: (body: Body) => (body instanceof Uint8Array ? batchInBytes(body) : batchInJson(body)).count,
    answerBytes: async (message, context) => answer(new BinaryBatch(message), context),
    answerJson: async (body, context) => answer(new JsonBatch(body), context),
  }
}

function requireAtMost(most: number, count: number): void {
  if (count <= most) return
  throw invalidArgument({ field: "requests", description: `has ${count} requests; ${most} are accepted` })
}

/** In place of an attempt whose answer is written. */
const WRITTEN = emptyAnswer()

/** The requests of a batch: all are read first, so that a malformed batch takes no units; then decided, then written. */
class ForwardBatch implements LongWork {
  readonly #format: BatchFormat
  readonly #forwarding: Forwarding
  readonly #context: CallContext
  readonly #requests: (ShouldForwardRequestRequest | undefined)[] = []
  readonly #attempts: (ForwardAttempt | Promise<ForwardAttempt>)[] = []
  readonly #taken = new TakenUnits()
  #written = 0
  /** Whether a request is about a service that the token is not for. */
  hasWrongToken = false
  /** Whether an attempt waits for the store or for a turn in a queue. */
  #isWaiting = false

  constructor(format: BatchFormat, forwarding: Forwarding, context: CallContext) {
    this.#format = format
    this.#forwarding = forwarding
    this.#context = context
  }

  /** Resolves when all answers are written. If the caller gets none of them, all units are refunded. */
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
      this.#requests.push(...this.#format.readNext(READ_TOGETHER))
      return true
    }
    if (this.#attempts.length < count) {
      const end = Math.min(count, this.#attempts.length + DECIDED_TOGETHER)
      while (this.#attempts.length < end) this.#decideNext()
    }
    // Answers are written in order, so after all that are waited for.
    if (this.#isWaiting) return this.#attempts.length < count
    const decided = this.#attempts.length
    if (decided === count || decided - this.#written >= WRITTEN_TOGETHER) this.#writeSettled()
    return this.#written < count
  }

  #writeSettled(): void {
    const end = Math.min(this.#attempts.length, this.#written + WRITTEN_TOGETHER)
    const answers = this.#attempts.slice(this.#written, end) as ForwardAttempt[]
    // What is written need not live on.
    while (this.#written < end) this.#attempts[this.#written++] = WRITTEN
    this.#format.write(answers.map(answerOf))
  }

  #decideNext(): void {
    const index = this.#attempts.length
    const request = this.#requests[index] as ShouldForwardRequestRequest
    this.#requests[index] = undefined
    const attempt = this.#forwarding.attempt(request, this.#context, this.#format.isBrief, this.#taken)
    if (attempt instanceof Promise) this.#isWaiting = true
    else if (attempt instanceof TokenError) this.hasWrongToken = true
    this.#attempts.push(attempt)
  }

  #requireCaller(): void {
    if (hasLeft(this.#context.asking)) throw callerGone()
  }

  /** Waits for each in turn: most settle with one reply of the store, and `Promise.all` would allocate three objects for each. */
  async #settle(): Promise<void> {
    for (let i = 0; i < this.#attempts.length; i++) {
      const attempt = this.#attempts[i]
      if (attempt instanceof Promise) this.#attempts[i] = await attempt
    }
    this.#isWaiting = false
  }
}

/** Throws an error that is not a StatusError: a fault of the service fails the whole call. */
function answerOf(attempt: ForwardAttempt): ForwardAnswer {
  if (!(attempt instanceof Error)) return attempt
  if (!(attempt instanceof StatusError)) throw attempt
  return { ...emptyAnswer(), error: statusMessage(attempt) }
}
