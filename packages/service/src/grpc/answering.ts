import type { Call, CallContext } from "../calls.ts"
import type { DoorListeners, GrpcReader } from "../door.ts"
import { addressOf } from "../peers.ts"
import { Code, StatusError, shortened, TokenError } from "../status-error.ts"

/** A call whose request has come, whichever way it was read. */
export interface AskedCall extends CallContext {
  /** What has read it. */
  readonly reader: GrpcReader
  /** The bytes of its message. */
  readonly request: Uint8Array
  /** What it has ended with before it was answered, as its caller has gone or would not wait longer; undefined while it waits. */
  readonly endedWith: Code | undefined
  /** Answers with the bytes of a message; nothing is done once it has ended. */
  answer(bytes: Uint8Array): void
  /** Answers with an error; nothing is done once it has ended. */
  fail(error: StatusError): void
}

const FAULT = new StatusError(Code.INTERNAL, "An error of the decision service; its log has it.")

/** Has calls answered by their handlers, each if there is room for it, and each reported once. */
export class Answering {
  readonly #listeners: Pick<DoorListeners, "onFault" | "onAnswered" | "onWrongToken">

  constructor(listeners: Pick<DoorListeners, "onFault" | "onAnswered" | "onWrongToken">) {
    this.#listeners = listeners
  }

  /** Answers a call at once if its handler does. A message with more than `mostBytes` is refused. */
  answer(call: Call, asked: AskedCall, mostBytes = Number.POSITIVE_INFINITY): void {
    const sinceMs = this.#listeners.onAnswered === undefined ? 0 : performance.now()
    if (asked.request.length > mostBytes) {
      const details = `The message has ${asked.request.length} bytes; ${mostBytes} are accepted.`
      this.#fail(call, asked, new StatusError(Code.RESOURCE_EXHAUSTED, details), sinceMs)
      return
    }
    const { places } = asked
    let bytes: Uint8Array | Promise<Uint8Array>
    try {
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
    const told = isFault ? FAULT : shortened(error)
    this.#report(call, asked, told.code, sinceMs)
    if (error instanceof TokenError) this.#listeners.onWrongToken(call.path, addressOf(asked.peer))
    asked.fail(told)
    // Last: a listener may throw, and the call is over even so.
    if (isFault) this.#listeners.onFault(error, call.path)
  }

  #report(call: Call, asked: AskedCall, code: Code, sinceMs: number): void {
    const { onAnswered } = this.#listeners
    // A caller that did not wait for the answer has another one.
    onAnswered?.(call.path, asked.endedWith ?? code, performance.now() - sinceMs, asked.reader)
  }
}
