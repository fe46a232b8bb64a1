import { addressOf } from "../bounds/peers.ts"
import { answerInstead, type Call, type CallContext, tooLong } from "../calls.ts"
import type { DoorListeners, GrpcReader } from "../sockets/door.ts"
import { Code, StatusError, shortened, TokenError } from "../status-error.ts"

/** A call whose request has arrived, whether grpc-js or PlainCall has read it. */
export interface AskedCall extends CallContext {
  /** The reader that received the call. */
  readonly reader: GrpcReader
  /** Bytes of the request message. */
  readonly request: Uint8Array
  /**
   * The status code of a call that ended before its response, because its caller disconnected or its deadline passed.
   * Undefined while the caller waits.
   */
  readonly endedWith: Code | undefined
  /** Responds with the bytes of a message. A no-op once the call has ended. */
  answer(bytes: Uint8Array): void
  /** Responds with an error. A no-op once the call has ended. */
  fail(error: StatusError): void
}

const FAULT = new StatusError(Code.INTERNAL, "The decision service failed; see its log.")

/** Runs the handlers of calls within the limits for calls in flight, and reports each call once. */
export class Answering {
  readonly #listeners: DoorListeners

  constructor(listeners: DoorListeners) {
    this.#listeners = listeners
  }

  /** Responds to a call, synchronously if its handler is synchronous. Refuses a message with more than `mostBytes`. */
  answer(call: Call, asked: AskedCall, mostBytes = Number.POSITIVE_INFINITY): void {
    const sinceMs = this.#listeners.onAnswered === undefined ? 0 : performance.now()
    if (asked.request.length > mostBytes) {
      this.#fail(call, asked, tooLong(asked.request.length, mostBytes), sinceMs)
      return
    }
    const { places } = asked
    let bytes: Uint8Array | Promise<Uint8Array>
    try {
      call.authorize(asked.token)
      places.take(call.requestsIn?.(asked.request), asked.request.length)
      bytes = call.answerBytes(asked.request, asked)
    } catch (error) {
      places.leave()
      this.#fail(call, asked, error, sinceMs)
      return
    }
    if (!(bytes instanceof Promise)) {
      places.leave()
      this.#succeed(call, asked, bytes, sinceMs)
      return
    }
    places.wait()
    bytes.then(
      (later) => {
        places.leave()
        this.#succeed(call, asked, later, sinceMs)
      },
      (error: unknown) => {
        places.leave()
        this.#fail(call, asked, error, sinceMs)
      },
    )
  }

  #succeed(call: Call, asked: AskedCall, bytes: Uint8Array, sinceMs: number): void {
    this.#report(call, asked, Code.OK, sinceMs)
    asked.answer(bytes)
  }

  #fail(call: Call, asked: AskedCall, error: unknown, sinceMs: number): void {
    const isFault = !(error instanceof StatusError)
    const instead = isFault ? undefined : answerInstead(call, asked.request.length, error)
    if (instead !== undefined) {
      this.#succeed(call, asked, instead, sinceMs)
      return
    }
    const told = isFault ? FAULT : shortened(error)
    this.#report(call, asked, told.code, sinceMs)
    if (error instanceof TokenError) this.#listeners.onWrongToken?.(call.path, addressOf(asked.peer))
    asked.fail(told)
    // Report the fault last, because the listener may throw, and the caller must still receive a response.
    if (isFault) this.#listeners.onFault(error, call.path)
  }

  #report(call: Call, asked: AskedCall, code: Code, sinceMs: number): void {
    const listeners = this.#listeners
    if (listeners.onAnswered === undefined) return
    // If the call ended before its response, report the code with which the call ended.
    const told = asked.endedWith ?? code
    listeners.onAnswered("grpc", call.path, told, performance.now() - sinceMs, asked.reader)
  }
}
