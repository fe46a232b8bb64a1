import {
  createRegistry,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf"
import type { ClosingResponse } from "@sluice/core"
import { BadRequestSchema } from "./gen/google/rpc/error_details_pb.ts"
import type { CallPlaces } from "./in-flight.ts"
import { Code, OverloadError, StatusError } from "./status-error.ts"

/** A caller that waits for an answer. It becomes closed when it stops waiting. */
export type Asking = ClosingResponse

/** Information about a call that a server passes to the handler along with the request. */
export interface CallContext {
  readonly asking: Asking
  /** Token of the header `Authorization: Bearer …`. */
  readonly token: string | undefined
  /** Address of the caller, for the log. */
  readonly peer: string
  /** The places that this call occupies in the limits for calls in flight. */
  readonly places: CallPlaces
}

/**
 * A function that answers a call, with a value if it can and otherwise with a promise. It throws or rejects with
 * StatusError; any other error is a fault of the service.
 */
export type Handler<Input, Output> = (request: Input, context: CallContext) => Output | Promise<Output>

/** The handlers of a service, keyed by method name. */
export type Handlers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]: Service["method"][Name] extends DescMethodUnary<
    infer Input,
    infer Output
  >
    ? Handler<MessageShape<Input>, MessageShape<Output>>
    : never
}

/** Functions that write the bytes of answers, for methods where the protobuf library is too slow. */
export type Serializers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]?: (
    message: MessageShape<Service["method"][Name]["output"]>,
  ) => Uint8Array
}

/**
 * Functions that convert a JSON body to the form that protobuf reads, for methods that accept other forms too. They
 * throw StatusError for an invalid body.
 */
export type JsonReaders<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]?: (body: JsonValue) => JsonValue
}

/** A method that can be called through either server. */
export interface Call {
  /** Path of the method, such as "/sluice.v1.RateLimiter/ShouldForwardRequest". */
  readonly path: string
  readonly output: DescMessage
  /** Maximum bytes of a request, if it may be longer than the request of a single decision. */
  readonly maxBytes?: number | undefined
  /** How a request is answered that is too large to be decided. Absent if its caller gets the error. */
  readonly tooLarge?: TooLarge | undefined
  /** Counts the requests in a batch without reading them. Absent if a call carries a single request. */
  readonly requestsIn?: ((body: Body) => number) | undefined
  /**
   * Answers a binary message with a binary message. Throws or rejects with StatusError; any other error is a fault of the service.
   */
  answerBytes(message: Uint8Array, context: CallContext): Uint8Array | Promise<Uint8Array>
  /** Takes a parsed JSON body. Returns the answer as JSON, in a string or in bytes. Throws and rejects like `answerBytes`. */
  answerJson(body: JsonValue, context: CallContext): string | Uint8Array | Promise<string | Uint8Array>
}

/** The answer to gRPC requests that are too large, for callers that let a request pass after an error. */
export interface TooLarge {
  /** Maximum bytes of a request. */
  readonly maxBytes: number
  /** More bytes than other requests have. A request with fewer gets an error if the service is overloaded. */
  readonly longBytes: number
  /** The answer as a message. */
  readonly answer: Uint8Array
}

/** Returns the maximum bytes of a gRPC request. `maxMessageBytes` is the limit for calls without their own. */
export function mostBytesOf({ tooLarge, maxBytes }: Call, maxMessageBytes: number): number {
  return tooLarge?.maxBytes ?? maxBytes ?? maxMessageBytes
}

/** Creates the error for a request that is longer than that. */
export function tooLong(bytes: number, most: number): StatusError {
  return new StatusError(
    Code.RESOURCE_EXHAUSTED,
    `The message has ${bytes} bytes; at most ${most} are accepted.`,
  )
}

/** Returns the answer to a request of this many bytes that is refused for its size, if its caller must not get the error. */
export function answerInstead(call: Call, bytes: number, error: StatusError): Uint8Array | undefined {
  const isForSize = error instanceof OverloadError || error.code === Code.RESOURCE_EXHAUSTED
  return isForSize && bytes > (call.tooLarge?.longBytes ?? bytes) ? call.tooLarge?.answer : undefined
}

/** A received message: its bytes, or its parsed JSON. */
export type Body = Uint8Array | JsonValue

/**
 * Creates the calls of a service, each with its handler. Leaves out the methods named in `Own`, whose calls are created
 * elsewhere.
 */
export function callsOf<Service extends DescService, Own extends string = never>(
  service: Service,
  handlers: Omit<Handlers<Service>, Own>,
  serializers: Serializers<Service> = {},
  jsonReaders: JsonReaders<Service> = {},
): Call[] {
  return service.methods.flatMap(({ localName, name, input, output }) => {
    const handle = handlers[localName as keyof typeof handlers] as unknown as AnyHandler | undefined
    if (handle === undefined) return []
    const serialize =
      (serializers[localName as keyof Serializers<Service>] as AnySerializer | undefined) ??
      ((message: AnyMessage) => toBinary(output, message))
    const readJson = jsonReaders[localName as keyof JsonReaders<Service>] ?? ((body: JsonValue) => body)
    const toText = (message: AnyMessage): string => jsonText(output, message)
    return {
      path: `/${service.typeName}/${name}`,
      output,
      answerBytes(message, context) {
        const answer = handle(readBytes(input, message), context)
        return answer instanceof Promise ? answer.then(serialize) : serialize(answer)
      },
      answerJson(body, context) {
        const answer = handle(readJsonBody(input, readJson(body)), context)
        return answer instanceof Promise ? answer.then(toText) : toText(answer)
      },
    } satisfies Call
  })
}

type AnyMessage = MessageShape<DescMessage>
type AnyHandler = Handler<AnyMessage, AnyMessage>
type AnySerializer = (message: AnyMessage) => Uint8Array

/** Reads a binary message. Throws StatusError if the bytes are not a valid message. */
export function readBytes<Desc extends DescMessage>(input: Desc, bytes: Uint8Array): MessageShape<Desc> {
  try {
    return fromBinary(input, bytes)
  } catch {
    throw notAMessage(input)
  }
}

/** Creates the error for bytes that are not a valid message of this type. */
export function notAMessage({ typeName }: DescMessage): StatusError {
  return new StatusError(Code.INVALID_ARGUMENT, `The message is not a valid ${typeName}.`)
}

/** Reads a message from JSON. Throws StatusError for a value of the wrong type and for an unknown field. */
export function readJsonBody<Desc extends DescMessage>(
  input: Desc,
  body: JsonValue,
  place = "The body",
): MessageShape<Desc> {
  try {
    return fromJson(input, body, { ignoreUnknownFields: false })
  } catch (error) {
    const message = `${place} is not a valid ${input.typeName}: ${(error as Error).message}`
    throw new StatusError(Code.INVALID_ARGUMENT, message)
  }
}

/** Message types that may appear in the details of an error. */
const DETAILS = createRegistry(BadRequestSchema)

/** Returns a message as JSON text. Fields that have their default value are included. */
export function jsonText<Desc extends DescMessage>(output: Desc, message: MessageShape<Desc>): string {
  return JSON.stringify(toJson(output, message, { alwaysEmitImplicit: true, registry: DETAILS }))
}

/** Returns the token of `Authorization: Bearer …` (RFC 6750 section 2.1), or undefined if there is none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? "")?.[1]
}
