import type { Decision, Limiter } from "@sluice/core"
import { createGuard, type Guard } from "@sluice/core/adapters"
import type { MaybePromise } from "@sluice/core/kit"
import {
  ADDRESS,
  type AppFunctions,
  FACTS,
  type FrameworkFacts,
  faultOf,
  withoutErrors,
} from "./app-functions.ts"
import { contexts } from "./context.ts"
import { Incoming } from "./incoming.ts"
import type { FetchAnswer, GuardedOptions } from "./options.ts"
import { keepAnswers, type OwnAnswers, toResponse } from "./own-answer.ts"
import { addHeaders, headersAfter } from "./response-headers.ts"
import { whenEnded } from "./when-ended.ts"

/** What an entry point knows about its framework. */
export interface Framework<Subject> extends AppFunctions<Subject> {
  /** Returns the request of a framework's object. May return anything for the object of another framework. */
  requestOf(subject: Subject): unknown
  /** Stores the decision where the framework's handlers look for it. */
  store?(subject: Subject, decision: Decision): void
}

/** The options of an entry point, whose functions may also receive a context. */
type LimitingOptions<Subject> = GuardedOptions<Subject, (...refused: never) => FetchAnswer> & {
  readonly clientAddress?: ((subject: Subject, context: never) => string | undefined) | undefined
  readonly facts?: ((subject: Subject, context: never) => FrameworkFacts) | undefined
}

/** A decided request. */
export interface Decided<Subject> {
  readonly incoming: Incoming<Subject>
  /** The rate limit headers to add to the response. */
  readonly headers: Headers
  /** The complete response to a refused request; undefined if the request is admitted. */
  readonly refusal?: Response
}

/**
 * Limits the requests of an entry point. A subject is the object that the app's functions receive: the framework's own
 * object, or the request. The limiter's decision is stored on it.
 */
export class Limiting<Subject extends object> {
  readonly #guard: Guard<Subject>
  readonly #framework: Framework<Subject>
  readonly #read: AppFunctions<Subject>
  readonly #ownAnswers: OwnAnswers = new WeakMap()

  /** The app's `clientAddress` and `facts` replace those of the framework. Throws InvalidOptionError. */
  constructor(options: LimitingOptions<Subject>, framework: Framework<Subject>) {
    const { clientAddress, facts, ...others } = options ?? {}
    this.#guard = createGuard(keepAnswers(others, this.#ownAnswers), (subject) =>
      this.#incoming(subject as Subject),
    )
    this.#framework = framework
    const warn = this.#guard.warn.bind(this.#guard)
    this.#read = {
      clientAddress: clientAddress ? withoutErrors(clientAddress, ADDRESS, warn) : framework.clientAddress,
      facts: facts ? withoutErrors(facts, FACTS, warn) : framework.facts,
    }
  }

  get limiter(): Limiter<Subject> {
    return this.#guard.limiter
  }

  /** Decides a request. Rejects if its address cannot be known, and with what `onRejected` throws. */
  async decide(subject: Subject): Promise<Decided<Subject>> {
    const incoming = this.#incoming(subject)
    if (incoming === undefined)
      throw faultOf(
        A_REQUEST,
        "is not a Request of the fetch API, or not from the framework of this entry point",
      )
    const outcome = await this.#guard.check(incoming, subject, incoming)
    if (this.#guard.holdsPermits(subject)) incoming.onClose(() => this.#guard.release(subject))
    if (incoming.fault !== undefined) throw this.#failed(incoming, incoming.fault)
    // The client has hung up, so nobody reads this response. nginx logs the same status.
    const gone = { incoming, headers: new Headers(), refusal: new Response(null, { status: 499 }) }
    if (outcome === undefined) return gone
    this.#framework.store?.(subject, outcome.decision)
    const decided = { incoming, headers: headersAfter(outcome, incoming.request) }
    const { rejection } = outcome
    if (rejection === undefined) return decided
    const answer = (await this.#guard.answer(outcome, subject, contexts.get(subject))) ?? rejection
    const refusal = this.finish(decided, this.#ownAnswers.get(subject) ?? toResponse(answer))
    return { ...decided, refusal }
  }

  /**
   * Adds the headers to a response, passes its status to `refundWhen`, and releases permits when its body has ended. In
   * Bun, there is no response after an upgrade to a WebSocket.
   */
  finish<Result extends Response | undefined>(
    { incoming, headers }: Decided<Subject>,
    response: Result,
    isUpgrade: boolean = response === undefined,
  ): Response | Result {
    const { request, subject } = incoming
    if (isUpgrade) this.#guard.release(subject)
    if (response === undefined) return response
    this.#settle(incoming, response.status)
    if (!this.#guard.holdsPermits(subject)) return addHeaders(response, headers)
    // Only wrap the body if necessary, because servers send some bodies faster than a stream.
    return addHeaders(
      whenEnded(request, response, () => this.#guard.release(subject)),
      headers,
    )
  }

  /** Responds to a refused request, and runs `next` for every other request. */
  async pass<Result extends Response | undefined>(
    subject: Subject,
    next: () => MaybePromise<Result>,
  ): Promise<Response | Result> {
    const decided = await this.decide(subject)
    if (decided.refusal !== undefined) return decided.refusal
    try {
      return this.finish(decided, await next())
    } catch (error) {
      throw this.#failed(decided.incoming, error)
    }
  }

  #failed(incoming: Incoming<Subject>, error: unknown): unknown {
    this.#settle(incoming, statusOf(error))
    this.#guard.release(incoming.subject)
    return error
  }

  #settle({ request, subject }: Incoming<Subject>, status: number): void {
    // A client that has hung up does not receive the response, so its units stay taken.
    if (this.#guard.needsStatus && !request.signal.aborted) this.#guard.reportStatus(subject, status)
  }

  #incoming(subject: Subject): Incoming<Subject> | undefined {
    const request = this.#framework.requestOf(subject) as Partial<Request> | undefined
    if (typeof request?.headers?.get !== "function") return undefined
    return new Incoming(request as Request, subject, this.#read)
  }
}

/** Returns the status that a framework sends when a handler throws this error. */
function statusOf(error: unknown): number {
  const { status } = (error ?? {}) as { readonly status?: unknown }
  return typeof status === "number" ? status : 500
}

const A_REQUEST = {
  path: "request",
  accepted: "limit(request, context), such as event.req in h3. Hono, SvelteKit and Elysia have entry points",
}
