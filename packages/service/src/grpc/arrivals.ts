import {
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServerListener,
  ServerListenerBuilder,
} from "@grpc/grpc-js"
import { Code } from "../status-error.ts"

/** What a call ends with that is not answered. */
export interface Ending {
  readonly code: Code
  readonly details: string
}

/** A call that can be ended before its request has come. */
export interface Unanswered {
  sendStatus(ending: Ending): void
}

/** Bounds of calls whose request has not come yet. */
export interface ArrivalBounds {
  /** How many there may be; more are refused with RESOURCE_EXHAUSTED. */
  readonly mostArriving: number
  /** Milliseconds after which one is ended with DEADLINE_EXCEEDED. */
  readonly arrivalMs: number
}

/** A call in the order in which they have begun. */
interface Arriving {
  readonly call: Unanswered
  readonly sinceMs: number
  earlier: Arriving | undefined
  later: Arriving | undefined
  hasLeft: boolean
}

/** What a call ends with that is one too many. */
export const TOO_MANY_ARRIVING: Ending = {
  code: Code.RESOURCE_EXHAUSTED,
  details: "Too many calls are being sent at once.",
}

/**
 * Keeps calls from piling up of which clients send the beginning and no more: gRPC waits for the rest for ever. As all may
 * take the same time, the first that has begun is the first to be late, and one timer is enough.
 */
export class Arrivals {
  /** Has the calls that @grpc/grpc-js reads begin and leave. */
  readonly interceptor: ServerInterceptor
  readonly #bounds: ArrivalBounds
  // A list of our own: a Map that calls come to and leave for ever keeps them from being collected (renewed-streams.ts).
  #first: Arriving | undefined
  #last: Arriving | undefined
  #count = 0
  #timer: NodeJS.Timeout | undefined

  constructor(bounds: ArrivalBounds) {
    this.#bounds = bounds
    this.interceptor = (_method, call) => {
      const leave = this.begin(call)
      const responder = new ResponderBuilder().withStart((next) => {
        if (leave === undefined) call.sendStatus(TOO_MANY_ARRIVING)
        else next(listenerOf(leave))
      })
      return new ServerInterceptingCall(call, responder.build())
    }
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** What is to be called when its request has come, or nobody waits for that any more; undefined when it is one too many. */
  begin(call: Unanswered): (() => void) | undefined {
    if (this.#count >= this.#bounds.mostArriving) return undefined
    const earlier = this.#last
    const arriving: Arriving = {
      call,
      sinceMs: performance.now(),
      earlier,
      later: undefined,
      hasLeft: false,
    }
    if (earlier === undefined) this.#first = arriving
    else earlier.later = arriving
    this.#last = arriving
    this.#count++
    this.#timer ??= setTimeout(() => this.#endLate(), this.#bounds.arrivalMs).unref()
    return () => this.#leave(arriving)
  }

  #leave(arriving: Arriving): void {
    if (arriving.hasLeft) return
    arriving.hasLeft = true
    this.#count--
    const { earlier, later } = arriving
    if (earlier === undefined) this.#first = later
    else earlier.later = later
    if (later === undefined) this.#last = earlier
    else later.earlier = earlier
    // Or it would keep those that came after it.
    arriving.earlier = undefined
    arriving.later = undefined
  }

  #endLate(): void {
    const { arrivalMs } = this.#bounds
    const nowMs = performance.now()
    this.#timer = undefined
    for (let next = this.#first; next !== undefined; next = this.#first) {
      const leftMs = next.sinceMs + arrivalMs - nowMs
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.#endLate(), leftMs).unref()
        return
      }
      this.#leave(next)
      next.call.sendStatus({
        code: Code.DEADLINE_EXCEEDED,
        details: `The request did not come within ${arrivalMs} ms.`,
      })
    }
  }
}

function listenerOf(leave: () => void): ServerListener {
  return new ServerListenerBuilder()
    .withOnReceiveHalfClose((next) => {
      leave()
      next()
    })
    .withOnCancel(leave)
    .build()
}
