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
import { Code, StatusError } from "./status-error.ts"

/** Who asks, as long as it does: it is closed when nobody waits for the answer any more. */
export type Asking = ClosingResponse

/** What a door knows of a call beside its request. */
export interface CallContext {
  readonly asking: Asking
  /** Of `Authorization: Bearer …`. */
  readonly token: string | undefined
  /** Address of who has sent it, for the log. */
  readonly peer: string
  /** What the call takes of the room for calls in flight. */
  readonly places: CallPlaces
}

/** Answers a call, with a value where it can. Throws or rejects with StatusError; any other error is a fault of ours. */
export type Handler<Input, Output> = (request: Input, context: CallContext) => Output | Promise<Output>

/** The handlers of a service by the names of its methods. */
export type Handlers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]: Service["method"][Name] extends DescMethodUnary<
    infer Input,
    infer Output
  >
    ? Handler<MessageShape<Input>, MessageShape<Output>>
    : never
}

/** Writes the bytes of answers, for methods where the protobuf library is too slow. */
export type Serializers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]?: (
    message: MessageShape<Service["method"][Name]["output"]>,
  ) => Uint8Array
}

/** Changes a body of JSON to what protobuf reads, for methods that accept more. Throws StatusError for a wrong body. */
export type JsonReaders<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]?: (body: JsonValue) => JsonValue
}

/** A method that can be called through any door. */
export interface Call {
  /** "/sluice.v1.RateLimiter/ShouldForwardRequest". */
  readonly path: string
  readonly output: DescMessage
  /** Bytes of its request, if they may be more than those of a single decision. */
  readonly maxBytes?: number | undefined
  /** Counts the requests in a batch without reading them. Absent in a call that has one request. */
  readonly requestsIn?: ((body: Body) => number) | undefined
  /**
   * Answers a binary message with a binary message. Throws or rejects with StatusError; any other error is a fault of the service.
   */
  answerBytes(message: Uint8Array, context: CallContext): Uint8Array | Promise<Uint8Array>
  /** Answers a body of JSON with JSON, as text or its bytes. Throws and rejects as `answerBytes` does. */
  answerJson(body: JsonValue, context: CallContext): string | Uint8Array | Promise<string | Uint8Array>
}

/** A message as it arrives: its bytes, or its JSON after parsing. */
export type Body = Uint8Array | JsonValue

/** The calls of a service, each with its handler. The methods named in `Own` are left out: their calls are made elsewhere. */
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

/** Reads a binary message. Throws StatusError when the bytes are not one. */
export function readBytes<Desc extends DescMessage>(input: Desc, bytes: Uint8Array): MessageShape<Desc> {
  try {
    return fromBinary(input, bytes)
  } catch {
    throw notAMessage(input)
  }
}

/** The error for bytes that are not a message of this type. */
export function notAMessage({ typeName }: DescMessage): StatusError {
  return new StatusError(Code.INVALID_ARGUMENT, `The message is not a valid ${typeName}.`)
}

/** Reads a message from JSON. Throws StatusError for a value of another type and for an unknown field. */
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

/** What an error may contain. */
const DETAILS = createRegistry(BadRequestSchema)

/** The text of a message in JSON, with every field that has a default. */
export function jsonText<Desc extends DescMessage>(output: Desc, message: MessageShape<Desc>): string {
  return JSON.stringify(toJson(output, message, { alwaysEmitImplicit: true, registry: DETAILS }))
}

/** The token of `Authorization: Bearer …` (RFC 6750 section 2.1); undefined where there is none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? "")?.[1]
}
