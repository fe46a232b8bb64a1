import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf"
import type { Call, CallContext } from "../calls.ts"
import type { DoorListeners } from "../door.ts"
import { Code, StatusError, shortened } from "../status-error.ts"

type Message = MessageShape<DescMessage>

/** A call whose request has come, whichever way it was read. */
export interface AskedCall extends CallContext {
  /** The bytes of its message. */
  readonly request: Uint8Array
  /** What it has ended with before it was answered, as its caller has gone or would not wait longer; undefined while it waits. */
  readonly endedWith: Code | undefined
  /** Answers with the bytes of a message; nothing is done once it has ended. */
  answer(bytes: Uint8Array): void
  /** Answers with an error; nothing is done once it has ended. */
  fail(error: StatusError): void
}

const TOO_MANY = new StatusError(Code.RESOURCE_EXHAUSTED, "Too many calls are in flight; try again later.")
const FAULT = new StatusError(Code.INTERNAL, "An error of the decision service; its log has it.")

/** Has calls answered by their handlers: no more at once than a bound, and each told of once. */
export class Answering {
  readonly #most: number
  readonly #listeners: Pick<DoorListeners, "onFault" | "onAnswered">
  #inFlight = 0

  constructor(mostInFlight: number, listeners: Pick<DoorListeners, "onFault" | "onAnswered">) {
    this.#most = mostInFlight
    this.#listeners = listeners
  }

  /** Answers a call at once where its handler does. */
  answer(call: Call, asked: AskedCall): void {
    const sinceMs = this.#listeners.onAnswered === undefined ? 0 : performance.now()
    this.#inFlight++
    let value: Message | Promise<Message>
    try {
      if (this.#inFlight > this.#most) throw TOO_MANY
      value = call.handle(read(call, asked.request), asked)
    } catch (error) {
      this.#fail(call, asked, error, sinceMs)
      return
    }
    if (!(value instanceof Promise)) {
      this.#succeed(call, asked, value, sinceMs)
      return
    }
    value.then(
      (later) => this.#succeed(call, asked, later, sinceMs),
      (error: unknown) => this.#fail(call, asked, error, sinceMs),
    )
  }

  #succeed(call: Call, asked: AskedCall, value: Message, sinceMs: number): void {
    let bytes: Uint8Array
    try {
      bytes = call.serialize(value)
    } catch (error) {
      this.#fail(call, asked, error, sinceMs)
      return
    }
    this.#end(call, asked, Code.OK, sinceMs)
    asked.answer(bytes)
  }

  #fail(call: Call, asked: AskedCall, error: unknown, sinceMs: number): void {
    const isFault = !(error instanceof StatusError)
    const told = isFault ? FAULT : shortened(error)
    this.#end(call, asked, told.code, sinceMs)
    asked.fail(told)
    // Last: whoever is told may throw, and its call is over then all the same.
    if (isFault) this.#listeners.onFault(error, call.path)
  }

  #end(call: Call, asked: AskedCall, code: Code, sinceMs: number): void {
    this.#inFlight--
    const { onAnswered } = this.#listeners
    // The answer that the caller has is not ours where it did not wait for it.
    onAnswered?.(call.path, asked.endedWith ?? code, performance.now() - sinceMs)
  }
}

function read({ input }: Call, bytes: Uint8Array): Message {
  try {
    return fromBinary(input, bytes)
  } catch {
    throw new StatusError(Code.INVALID_ARGUMENT, `The message is no ${input.typeName}.`)
  }
}
