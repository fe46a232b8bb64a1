import { type Decision, decisionOn, RefusalError, type RejectionAnswer } from "@sluice/core"
import { FastifyExchange, setHeaders } from "./exchange.ts"

/** An exchange that passes a refusal to the app's error handler. */
export class ThrowingExchange extends FastifyExchange {
  override send(answer: RejectionAnswer): void {
    const { request, response } = this
    const error = new RefusalError(decisionOn(request) as Decision, answer)
    setHeaders(response, error.headerLines)
    // An error handler may answer without a status. Set it on Node's response: `reply.code` would also be the status of
    // `reply.redirect`.
    response.raw.statusCode = answer.status
    this.done(error)
  }
}
