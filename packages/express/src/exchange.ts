import {
  type Decision,
  decisionOn,
  NodeExchange,
  type Outcome,
  RefusalError,
  type RejectionAnswer,
} from "@sluice/core"
import type { NextFunction, Request } from "express"

/** A request of Express with its response. The decision is put on the request. */
export class ExpressExchange extends NodeExchange<Request> {
  override apply(outcome: Outcome): void {
    this.request.rateLimit = outcome.decision
    super.apply(outcome)
  }
}

/** An exchange that passes a refusal to the app's error handler. */
export class ExpressThrowingExchange extends ExpressExchange {
  override send(answer: RejectionAnswer): void {
    const error = new RefusalError(decisionOn(this.request) as Decision, answer)
    this.setHeaders(error.headerLines)
    // An error handler may answer without a status. Its redirect sets another one.
    this.nodeResponse.statusCode = answer.status
    const next = this.next as NextFunction
    next(error)
  }
}
