import type { ServerResponse } from "node:http"
import { ignore } from "../ground/time.ts"
import type { HeaderLine, RejectionAnswer } from "../limiter/options/answer-options.ts"
import type { DecisionStep } from "../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Guard } from "./guard/guard.ts"
import type { Outcome } from "./guard/mount-outcome.ts"

/** One request and its response, in the objects of a framework. {@link NodeExchange} is the one of a plain Node server. */
export interface Exchange<Request extends object> {
  /** What the app's functions receive as the request. */
  readonly request: Request
  /** What the app's `onRejected` receives as the response. */
  readonly response: unknown
  /** The response of Node's own server below the framework. */
  readonly nodeResponse: ServerResponse
  /** Keeps the decision where the framework's handlers look for it, and sets the headers. */
  apply(outcome: Outcome): void
  /** Passes the request to the next handler. `respond` returns what this returns. */
  proceed(): unknown
  /** Returns true if other code has taken the response over, so that nothing may be sent. */
  isTaken(): boolean
  /** Starts to watch the response before `onRejected` runs. Returns a function that says if the app has answered since. */
  watch(): () => boolean
  /** Sends the answer to a refused request. */
  send(answer: RejectionAnswer): void
  /** Calls back with the status when the response has been sent. Absent if the adapter calls `guard.settle` itself. */
  onSent?(listener: (status: number) => void): void
}

/** An exchange whose headers and answers are written onto Node's own response. */
export class NodeExchange<Request extends object> implements Exchange<Request> {
  declare readonly request: Request
  declare readonly nodeResponse: ServerResponse
  /** Runs the next handler. */
  declare readonly next: () => unknown
  declare readonly response: unknown

  /** `next` runs the next handler. `response` is what `onRejected` receives; default: Node's own response. */
  constructor(
    request: Request,
    nodeResponse: ServerResponse,
    next: () => unknown,
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
    // Node sets no length for a body that it leaves out, as for HEAD. These two statuses must have none (RFC 9110, section 8.6).
    if (status !== 204 && status !== 304) nodeResponse.setHeader("Content-Length", Buffer.byteLength(body))
    nodeResponse.end(body)
  }

  onSent(listener: (status: number) => void): void {
    const { nodeResponse } = this
    nodeResponse.once("finish", () => {
      // Over HTTP/2, "finish" is also emitted if the client cancels its request: the units stay taken.
      if (nodeResponse.writableEnded) listener(nodeResponse.statusCode)
    })
  }

  /** Sets headers on Node's response. Cookies are added to those that the app has set. */
  setHeaders(headers: readonly HeaderLine[]): void {
    for (const [name, value] of headers) {
      if (name === "Set-Cookie") this.nodeResponse.appendHeader(name, value)
      else this.nodeResponse.setHeader(name, value)
    }
  }
}

/**
 * Has the guard decide on a request, sets the headers, and passes the request on or answers it. Does nothing if the client has gone
 * while its request was held. `step` is the step to decide; default: all rules at once.
 *
 * Returns what `exchange.proceed` returns, or a promise if the store or `onRejected` answers later. The promise rejects with what the
 * next handler throws.
 */
export function respond<Request extends object>(
  guard: Guard<Request>,
  facts: RequestFacts,
  exchange: Exchange<Request>,
  step?: DecisionStep,
): unknown {
  if (guard.settles) settleWhenSent(guard, exchange)
  const outcome = guard.check(facts, exchange.request, exchange.nodeResponse, step)
  // On the memory store no request waits for a promise. The closure is in a function of its own, or every request would pay for it.
  return outcome instanceof Promise
    ? carryOutLater(outcome, guard, exchange)
    : carryOut(outcome, guard, exchange)
}

function settleWhenSent<Request extends object>(guard: Guard<Request>, exchange: Exchange<Request>): void {
  exchange.onSent?.((status) => guard.settle(exchange.request, status))
}

function carryOutLater<Request extends object>(
  outcome: Promise<Outcome | undefined>,
  guard: Guard<Request>,
  exchange: Exchange<Request>,
): Promise<unknown> {
  return outcome.then((made) => carryOut(made, guard, exchange))
}

function carryOut<Request extends object>(
  outcome: Outcome | undefined,
  guard: Guard<Request>,
  exchange: Exchange<Request>,
): unknown {
  // The client has gone while its request was held.
  if (outcome === undefined) return undefined
  exchange.apply(outcome)
  const { rejection } = outcome
  if (rejection === undefined) return exchange.proceed()
  if (exchange.isTaken()) return undefined
  const { nodeResponse } = exchange
  if (nodeResponse.headersSent) return nodeResponse.writableEnded ? undefined : endBegun(guard, nodeResponse)
  return guard.asksApp ? askApp(outcome, guard, exchange) : exchange.send(rejection)
}

function askApp<Request extends object>(
  outcome: Outcome,
  guard: Guard<Request>,
  exchange: Exchange<Request>,
): unknown {
  const hasAnswered = exchange.watch()
  const sendUnlessAnswered = (answer: RejectionAnswer | undefined): void => {
    if (answer !== undefined && !hasAnswered()) exchange.send(answer)
  }
  const answer = guard.answer(outcome, exchange.request, exchange.response)
  return answer instanceof Promise ? answer.then(sendUnlessAnswered) : sendUnlessAnswered(answer)
}

/**
 * Ends a response whose headers have been sent. Otherwise its client would wait forever, as nobody after the limiter handles the
 * request. Never throws.
 */
function endBegun(guard: Pick<Guard<never>, "warnMountedTooLate">, response: ServerResponse): void {
  guard.warnMountedTooLate()
  const { socket, chunkedEncoding } = response
  try {
    // An earlier handler that goes on writing gets an error event, which would end the process if nobody listened.
    response.on("error", ignore)
    // A client waits for as many bytes as Content-Length says, until the connection closes. A server that is only simulated has none.
    if (chunkedEncoding === false) response.once("finish", () => socket?.destroySoon?.())
    // Without a callback: middleware that replaces `end`, such as compression, would take it for the last chunk.
    response.end()
  } catch {
    // Middleware that replaces `end` may throw.
    socket?.destroy()
  }
}
