import type { ServerInterceptingCall, ServerInterceptor } from "@grpc/grpc-js"
import { Code } from "../status-error.ts"
import { type InnerCall, WatchedCall } from "./watched-call.ts"

/** Bounds of calls whose request has not come yet. */
export interface ArrivalBounds {
  /** How many there may be; more are refused with RESOURCE_EXHAUSTED. */
  readonly mostArriving: number
  /** Milliseconds after which one is ended with DEADLINE_EXCEEDED. */
  readonly arrivalMs: number
}

/**
 * Keeps calls from piling up of which clients send the beginning and no more: gRPC waits for the rest for ever. As all may
 * take the same time, the first that has begun is the first to be late, and one timer is enough.
 */
export class Arrivals {
  readonly interceptor: ServerInterceptor
  readonly #bounds: ArrivalBounds
  /** When each has begun, the earliest first. */
  readonly #sinceMs = new Map<InnerCall, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(bounds: ArrivalBounds) {
    this.#bounds = bounds
    const arrived = (call: InnerCall): void => {
      this.#sinceMs.delete(call)
    }
    // A server asks for no more than the methods of a call; its types name the one class that grpc-js has for it.
    this.interceptor = (_method, call) =>
      new WatchedCall(call, this.#begin(call), arrived) as unknown as ServerInterceptingCall
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#sinceMs.clear()
  }

  #begin(call: InnerCall): boolean {
    if (this.#sinceMs.size >= this.#bounds.mostArriving) return false
    this.#sinceMs.set(call, performance.now())
    this.#timer ??= setTimeout(() => this.#endLate(), this.#bounds.arrivalMs).unref()
    return true
  }

  #endLate(): void {
    const { arrivalMs } = this.#bounds
    const nowMs = performance.now()
    this.#timer = undefined
    for (const [call, sinceMs] of this.#sinceMs) {
      const leftMs = sinceMs + arrivalMs - nowMs
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.#endLate(), leftMs).unref()
        return
      }
      this.#sinceMs.delete(call)
      call.sendStatus({
        code: Code.DEADLINE_EXCEEDED,
        details: `The request did not come within ${arrivalMs} ms.`,
      })
    }
  }
}
