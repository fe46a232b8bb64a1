import { type Decision, decisionOn, RateLimitExceededError, type RejectionAnswer } from "@sluice/core"
import { FastifyExchange } from "./exchange.ts"

/**
 * A refusal that is passed to the app's error handler, because the plugin has the option `throwOnRefusal`. It is the
 * error of `limiter.enforce()` with the answer that would be sent otherwise.
 */
export class RefusalError extends RateLimitExceededError {
  /** The status of the answer: 429, or 400 if a field is missing, or 503 if the store fails; or that of `onRejected`. */
  readonly statusCode: number
  /** The answer that the plugin sends without `throwOnRefusal`. Its headers are already set, except `Content-Type`. */
  readonly rejection: RejectionAnswer

  /** Creates the error of a refused request. */
  constructor(decision: Decision, rejection: RejectionAnswer) {
    super(decision)
    this.statusCode = rejection.status
    this.rejection = rejection
  }
}

/** An exchange that passes a refusal to the app's error handler. */
export class ThrowingExchange extends FastifyExchange {
  override send(answer: RejectionAnswer): void {
    // Fastify removes Content-Type before it calls the error handler.
    this.prepare(answer)
    this.done(new RefusalError(decisionOn(this.request) as Decision, answer))
  }
}
