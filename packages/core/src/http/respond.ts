import type { ServerResponse } from "node:http"
import type { HeaderLine, RejectionAnswer } from "../ground/answer.ts"
import { textOf } from "../ground/errors.ts"
import { ignore } from "../ground/time.ts"
import type { DecisionStep } from "../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../request/request.ts"
import { hasGone, onGone } from "./client-gone.ts"
import type { Guard } from "./guard/guard.ts"
import type { Outcome } from "./guard/mount-outcome.ts"
import { RefusalError } from "./refusal-error.ts"

/** One request and its response, in the objects of a framework. {@link NodeExchange} serves a plain Node server. */
export interface Exchange<Request extends object> {
  /** The request that the app's functions receive. */
  readonly request: Request
  /** The response that the app's `onRejected` receives. */
  readonly response: unknown
  /** The response of Node's own server below the framework. */
  readonly nodeResponse: ServerResponse
  /** Stores the decision where the framework's handlers look for it, and sets the headers. */
  apply(outcome: Outcome): void
  /** Passes the request to the next handler. `respond` returns the result of this function. */
  proceed(): unknown
  /** True if other code has taken over the response, so that nothing may be sent. */
  isTaken(): boolean
  /**
   * Starts to watch the response before `onRejected` runs. Returns a function that returns true once the app has
   * responded.
   */
  watch(): () => boolean
  /** Sends the response to a refused request. */
  send(answer: RejectionAnswer): void
  /** Passes a refusal to the app's error handler. Absent if the adapter does not have the option `throwOnRefusal`. */
  fail?(error: RefusalError): void
}

/** An exchange whose headers and responses are written onto Node's own response. */
export class NodeExchange<Request extends object> implements Exchange<Request> {
  declare readonly request: Request
  declare readonly nodeResponse: ServerResponse
  /** Runs the next handler or, with an error, the app's error handler. */
  declare readonly next: (error?: Error) => unknown
  declare readonly response: unknown

  /**
   * `next` runs the next handler or, with an error, the app's error handler. `response` is the response that
   * `onRejected` receives; default: Node's own response.
   */
  constructor(
    request: Request,
    nodeResponse: ServerResponse,
    next: (error?: Error) => unknown,
    response: unknown = nodeResponse,
  ) {
    this.request = request
    this.nodeResponse = nodeResponse
    this.next = next
    this.response = response
  }

  apply({ removed, headers }: Outcome): void {
    if (this.nodeResponse.headersSent) return
    for (const name of removed) this.nodeResponse.removeHeader(name)
    this.setHeaders(headers)
  }

  proceed(): unknown {
    this.next()
    return undefined
  }

  isTaken(): boolean {
    return false
  }

  watch(): () => boolean {
    return () => this.nodeResponse.headersSent || this.nodeResponse.writableEnded
  }

  send({ status, headers, body }: RejectionAnswer): void {
    const { nodeResponse } = this
    nodeResponse.statusCode = status
    this.setHeaders(headers)
    // Node does not set a length for a body that it omits, as for HEAD. These two statuses must not have a
    // length (RFC 9110, section 8.6).
    if (status !== 204 && status !== 304) nodeResponse.setHeader("Content-Length", Buffer.byteLength(body))
    nodeResponse.end(body)
  }

  fail(error: RefusalError): void {
    this.setHeaders(error.headerLines)
    // An error handler may respond without setting a status, so set the status here. A redirect of the handler
    // replaces it.
    this.nodeResponse.statusCode = error.status
    this.next(error)
  }

  /** Sets headers on Node's response. Cookies are added to the cookies that the app has set. */
  setHeaders(headers: readonly HeaderLine[]): void {
    for (const [name, value] of headers) {
      if (name === "Set-Cookie") this.nodeResponse.appendHeader(name, value)
      else this.nodeResponse.setHeader(name, value)
    }
  }
}

/**
 * Lets the guard decide on a request, sets the headers, and passes the request on or responds to it. Does nothing if
 * the client has gone while its request was held. `step` is the step to decide; default: all rules together.
 *
 * The permits of the request are released when the response closes. Node calls no middleware for an upgrade to a
 * WebSocket. So an app that limits sockets decides in its `upgrade` listener, and releases when the socket closes.
 *
 * Returns what `exchange.proceed` returns, or a promise if the store or `onRejected` responds later. The promise
 * rejects with what the next handler or `onRejected` throws. Pass this error to the framework's error handler.
 */
export function respond<Request extends object>(
  guard: Guard<Request>,
  facts: RequestFacts,
  exchange: Exchange<Request>,
  step?: DecisionStep,
): unknown {
  // The listener of the limiter's first mount or step also serves later mounts and steps.
  const isWatched = needsEnd(guard, exchange.request)
  const outcome = guard.check(facts, exchange.request, exchange.nodeResponse, step)
  // With the memory store, no request waits for a promise. The closure is in another function, because here every
  // request would allocate it.
  return outcome instanceof Promise
    ? carryOutLater(outcome, guard, exchange, isWatched)
    : carryOut(outcome, guard, exchange, isWatched)
}

function carryOutLater<Request extends object>(
  outcome: Promise<Outcome | undefined>,
  guard: Guard<Request>,
  exchange: Exchange<Request>,
  isWatched: boolean,
): Promise<unknown> {
  return outcome.then((made) => carryOut(made, guard, exchange, isWatched))
}

function carryOut<Request extends object>(
  outcome: Outcome | undefined,
  guard: Guard<Request>,
  exchange: Exchange<Request>,
  isWatched: boolean,
): unknown {
  // The outcome is undefined if the client has gone while its request was held.
  if (outcome === undefined) return undefined
  // If the client has gone since an earlier mount or step, the listener has been called and no longer listens.
  const isToWatch = isWatched ? hasGone(exchange.nodeResponse) : needsEnd(guard, exchange.request)
  if (isToWatch) watchEnd(guard, exchange)
  exchange.apply(outcome)
  const { rejection } = outcome
  if (rejection === undefined) return exchange.proceed()
  if (exchange.isTaken()) return undefined
  const { nodeResponse } = exchange
  if (nodeResponse.headersSent) return nodeResponse.writableEnded ? undefined : endBegun(guard, nodeResponse)
  return guard.asksApp ? askApp(outcome, guard, exchange) : refuse(rejection, outcome, guard, exchange)
}

/** True if the guard has decided the request, and acts when the response closes. */
function needsEnd<Request extends object>(guard: Guard<Request>, request: Request): boolean {
  return guard.needsStatus ? guard.limiter.decisionOn(request) !== undefined : guard.holdsPermits(request)
}

/** Reports the status and releases the permits when the response closes or the client disconnects. */
function watchEnd<Request extends object>(
  guard: Guard<Request>,
  { request, nodeResponse }: Exchange<Request>,
): void {
  // The client has gone while the store or a function of the app was pending.
  if (hasGone(nodeResponse)) {
    guard.release(request)
    return
  }
  const end = (): void => {
    stopListening()
    nodeResponse.off("finish", end)
    if (isSent(nodeResponse)) guard.reportStatus(request, nodeResponse.statusCode)
    guard.release(request)
  }
  const stopListening = onGone(nodeResponse, end)
  // A response without a server, such as a function's on AWS Lambda, never closes.
  nodeResponse.once("finish", end)
}

/**
 * True if a closed response was sent. The handler of a client that has disconnected has not ended the response, or has
 * ended it while it was queued behind another response on the same connection (HTTP/1 pipelining). Only in that case, a
 * response that is not finished has no socket.
 */
function isSent({ writableEnded, writableFinished, socket }: ServerResponse): boolean {
  return writableEnded && (writableFinished || socket !== null)
}

function refuse<Request extends object>(
  answer: RejectionAnswer,
  { decision }: Outcome,
  guard: Guard<Request>,
  exchange: Exchange<Request>,
): void {
  // An exchange without `fail` sends the response itself.
  if (guard.throws && exchange.fail !== undefined) exchange.fail(new RefusalError(decision, answer))
  else exchange.send(answer)
}

function askApp<Request extends object>(
  outcome: Outcome,
  guard: Guard<Request>,
  exchange: Exchange<Request>,
): unknown {
  const hasAnswered = exchange.watch()
  const send = (answer: RejectionAnswer | undefined): void => {
    if (answer !== undefined) refuse(answer, outcome, guard, exchange)
  }
  const failed = (error: unknown): void => {
    const { headersSent, writableEnded } = exchange.nodeResponse
    // After the app has responded, the framework cannot respond again. The framework only has to end a response that
    // has begun but not ended.
    if (!hasAnswered() || (headersSent && !writableEnded)) throw error
    const message = `onRejected failed after it had responded: ${textOf(error)}. The response is sent.`
    guard.warn({ code: "SLUICE_CALLBACK_FAILED", message })
  }
  const answer = guard.answer(outcome, exchange.request, exchange.response, hasAnswered)
  return answer instanceof Promise ? answer.then(send, failed) : send(answer)
}

/**
 * Ends a response whose headers have been sent. Otherwise the client would wait forever, because no handler after the
 * limiter receives the request. Never throws.
 */
function endBegun(guard: Pick<Guard<never>, "warnMountedTooLate">, response: ServerResponse): void {
  guard.warnMountedTooLate()
  const { socket, chunkedEncoding } = response
  try {
    // A handler that continues to write causes an error event. Without a listener, that event would end the process.
    response.on("error", ignore)
    // The client waits for as many bytes as Content-Length announces, so the connection must close. A simulated
    // server has no connection.
    if (chunkedEncoding === false) response.once("finish", () => socket?.destroySoon?.())
    // Pass no callback: middleware that replaces `end`, such as compression, would treat it as the last chunk.
    response.end()
  } catch {
    // The `end` of middleware may throw.
    socket?.destroy()
  }
}
