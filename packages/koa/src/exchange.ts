import type { RejectionAnswer } from "@sluice/core"
import { NodeExchange, type Outcome, type RefusalError } from "@sluice/core/adapters"
import type { Context } from "koa"
import { keepOnError } from "./error-headers.ts"

/**
 * A Koa context with its response. Headers are set on Node's own response, as `ctx.set` does. Status and body are set
 * on the context, and Koa sends them. The middleware before the limiter can therefore read and change the response.
 */
export class KoaExchange extends NodeExchange<Context> {
  override apply(outcome: Outcome): void {
    const ctx = this.request
    ctx.state.rateLimit = outcome.decision
    if (ctx.headerSent || ctx.respond === false) return
    super.apply(outcome)
    keepOnError(ctx, outcome.headers)
  }

  override proceed(): unknown {
    return this.next()
  }

  /** True if the app responds without Koa. False if the response has begun, so that `respond` can end it. */
  override isTaken(): boolean {
    return this.request.respond === false && !this.request.headerSent
  }

  override watch(): () => boolean {
    const ctx = this.request
    const { status, body } = ctx
    return () => ctx.headerSent || ctx.respond === false || ctx.status !== status || ctx.body !== body
  }

  override send({ status, headers, body }: RejectionAnswer): void {
    this.request.status = status
    // Set headers before the body, because Koa sets a default content type if none is set.
    this.setHeaders(headers)
    this.request.body = body
  }

  /** Throws the error to the middleware before the limiter. */
  override fail(error: RefusalError): void {
    this.setHeaders(error.headerLines)
    keepOnError(this.request, error.headerLines)
    // Set the status, because an error handler may set only a body. A redirect of the handler still sets its own
    // status.
    this.request.status = error.status
    throw error
  }
}
