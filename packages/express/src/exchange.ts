import { NodeExchange, type Outcome } from "@sluice/core/adapters"
import type { Request } from "express"

/** A request of Express with its response. The decision is stored on the request. */
export class ExpressExchange extends NodeExchange<Request> {
  override apply(outcome: Outcome): void {
    this.request.rateLimit = outcome.decision
    super.apply(outcome)
  }
}
