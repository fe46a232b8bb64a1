import { InvalidOptionError } from "../errors.ts"
import type { Decision } from "../limiter/decision.ts"
import { bindsMore } from "../limiter/decision-record.ts"
import type { MaybePromise } from "../stores/store.ts"
import type { HeaderLine } from "./headers/writer.ts"
import type { Limiter } from "./limiter.ts"
import type { LimiterOptions } from "./options.ts"
import type { Rejection } from "./rejection.ts"
import type { RequestFacts } from "./request.ts"
import { createLimiter, RequestLimiter } from "./request-limiter.ts"
import { type Logger, warnOncePerLogger } from "./warnings.ts"

/** Limiter options, or a limiter to share: several mounts then count together. */
export type GuardOptions<Request> = LimiterOptions<Request> | { readonly limiter: Limiter<Request> }

/** What an adapter does with a request. */
export interface Outcome {
  /** For the framework's request: of all mounts so far, the decision that binds. */
  readonly decision: Decision
  /** To be set on the response, in place of what an earlier mount has set under the same name. */
  readonly headers: readonly HeaderLine[]
  /** The answer, when the request is refused. */
  readonly rejection?: Rejection
}

/**
 * What stands between a framework and a limiter. An adapter translates its request into facts, asks `check`, sets the
 * headers, and either goes on or sends what `answer` yields.
 */
export interface Guard<Request extends object> {
  readonly limiter: Limiter<Request>
  /** Whether its rules, now and later, read only what is there when a request arrives, before body and handlers. */
  readonly readsArrivalOnly: boolean
  /** Whether `settle` has to be told the status of every response. */
  readonly settles: boolean
  /** Decides. Never throws, never rejects; answers with a value when the store does. */
  check(facts: RequestFacts, request: Request): MaybePromise<Outcome>
  /** What to send to a refused client, after the app's `onRejected`, which may have answered by then. */
  answer(outcome: Outcome, request: Request, response: unknown): MaybePromise<Rejection>
  /** Tells the status of a response that has been sent, for `refundWhen`. */
  settle(request: Request, status: number): void
  /** A guard for one route: `rule` in place of the inline rule, the rest shared, rules of a source too. */
  forRoute(rule: object, name: string): Guard<Request>
  /** Closes the limiter if the guard made it. */
  close(): Promise<void>
}

/**
 * A guard for an adapter.
 * @throws InvalidOptionError
 */
export function createGuard<Request extends object>(options: GuardOptions<Request>): Guard<Request> {
  const shared = typeof options === "object" && options !== null && "limiter" in options ? options : undefined
  if (shared === undefined) {
    return new LimiterGuard(
      createLimiter(options as LimiterOptions<Request>) as RequestLimiter<Request>,
      true,
    )
  }
  const problems = Object.keys(shared)
    .filter((name) => name !== "limiter")
    .map((path) => ({
      path,
      message: "is given together with limiter",
      accepted: "options of the limiter itself",
    }))
  if (!(shared.limiter instanceof RequestLimiter)) {
    problems.push({ path: "limiter", message: "is not a limiter", accepted: "what createLimiter() yields" })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems)
  return new LimiterGuard(shared.limiter as RequestLimiter<Request>, false)
}

/** What a guard has decided on a request, kept on the request under a symbol, newest first. */
interface Mark extends Outcome {
  readonly limiter: object
  /** This guard's own decision, whichever binds. */
  readonly own: Decision
  readonly earlier: Mark | undefined
}

const MARK = Symbol("sluice")

class LimiterGuard<Request extends object> implements Guard<Request> {
  readonly limiter: RequestLimiter<Request>
  readonly settles: boolean
  readonly #owned: boolean
  #createdInThisTurn = true

  constructor(limiter: RequestLimiter<Request>, owned: boolean) {
    this.limiter = limiter
    this.settles = limiter.options.refundWhen !== undefined
    this.#owned = owned
    // A server gets no request in the turn in which the app is put together: who does was made by a request.
    queueMicrotask(() => {
      this.#createdInThisTurn = false
    })
  }

  get readsArrivalOnly(): boolean {
    return this.limiter.readsArrivalOnly
  }

  check(facts: RequestFacts, request: Request): MaybePromise<Outcome> {
    if (this.#createdInThisTurn) warnCreatedInHandler(this.limiter.options.logger)
    const earlier = (request as { [MARK]?: Mark })[MARK]
    if (earlier !== undefined && this.#hasDecided(earlier)) {
      this.limiter.warner.once(
        "SLUICE_MOUNTED_TWICE",
        "The same limiter is mounted twice on one route. The request was counted once; remove one of the mounts.",
      )
      return { decision: earlier.decision, headers: [] }
    }
    const decision = this.limiter.admit(facts, request, undefined)
    return decision instanceof Promise
      ? decision.then((own) => this.#outcome(own, facts, request, earlier))
      : this.#outcome(decision, facts, request, earlier)
  }

  answer(outcome: Outcome, request: Request, response: unknown): MaybePromise<Rejection> {
    const standard = outcome.rejection as Rejection
    const { onRejected } = this.limiter.options
    if (onRejected === undefined) return standard
    const failed = (error: unknown): Rejection => {
      this.limiter.warner.once(
        "SLUICE_CALLBACK_FAILED",
        `onRejected failed: ${String(error)}.`,
        "onRejected",
        error,
      )
      return standard
    }
    try {
      const own = onRejected(request, standard, outcome.decision, response)
      return own instanceof Promise
        ? own.then((rejection) => rejection ?? standard, failed)
        : (own ?? standard)
    } catch (error) {
      return failed(error)
    }
  }

  settle(request: Request, status: number): void {
    const { refundWhen } = this.limiter.options
    for (let mark = (request as { [MARK]?: Mark })[MARK]; mark !== undefined; mark = mark.earlier) {
      if (mark.limiter !== this.limiter || refundWhen === undefined) continue
      try {
        if (refundWhen(request, status) !== true) continue
      } catch (error) {
        this.limiter.warner.once(
          "SLUICE_CALLBACK_FAILED",
          `refundWhen failed: ${String(error)}.`,
          "refundWhen",
          error,
        )
        continue
      }
      // A store that is gone keeps the units until their window has passed: the safe side.
      this.limiter.refund(mark.own).catch(() => undefined)
    }
  }

  forRoute(rule: object, name: string): Guard<Request> {
    return new LimiterGuard(this.limiter.forRoute(rule, name), false)
  }

  async close(): Promise<void> {
    if (this.#owned) await this.limiter.close()
  }

  #hasDecided(newest: Mark): boolean {
    for (let mark: Mark | undefined = newest; mark !== undefined; mark = mark.earlier) {
      if (mark.limiter === this.limiter) return true
    }
    return false
  }

  #outcome(own: Decision, facts: RequestFacts, request: Request, earlier: Mark | undefined): Outcome {
    const { limiter } = this
    const { writeHeaders, writeRejection } = limiter.ruleSet
    let headers = writeHeaders(own, limiter.wallClock)
    let decision = own
    if (earlier !== undefined) {
      if (bindsMore(earlier.decision, own)) decision = earlier.decision
      headers = joined(earlier.headers, headers, decision === own)
    }
    const mark: Mark = { limiter, own, earlier, decision, headers }
    ;(request as { [MARK]?: Mark })[MARK] = mark
    if (own.allowed) return mark
    const accept = facts.headers?.accept
    return { decision, headers, rejection: writeRejection(own, accept, limiter.wallClock) }
  }
}

/** Lists grow by the new members; fields with one number tell of the mount that binds. */
function joined(
  earlier: readonly HeaderLine[],
  own: readonly HeaderLine[],
  ownBinds: boolean,
): readonly HeaderLine[] {
  const lines = new Map(earlier)
  for (const [name, value] of own) {
    const before = lines.get(name)
    if (before === undefined || (ownBinds && !isList(name))) lines.set(name, value)
    else if (isList(name)) lines.set(name, `${before}, ${value}`)
  }
  return [...lines]
}

function isList(name: string): boolean {
  return name === "RateLimit-Policy" || name === "RateLimit"
}

function warnCreatedInHandler(logger: Logger | undefined): void {
  warnOncePerLogger(
    logger,
    "SLUICE_CREATED_IN_HANDLER",
    "A limiter was created while a request was being handled, so it counts nothing beyond that request. " +
      "Create it once, when the app starts, and mount it: app.use(rateLimit({ … })).",
  )
}
