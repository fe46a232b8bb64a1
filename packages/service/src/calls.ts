import {
  createRegistry,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  ScalarType,
  toBinary,
  toJson,
} from "@bufbuild/protobuf"
import type { ClosingResponse } from "@sluice/core/adapters"
import type { CallPlaces } from "./bounds/in-flight.ts"
import { BadRequestSchema } from "./gen/google/rpc/error_details_pb.ts"
import { Code, CostlyMessageError, invalidArgument, OverloadError, StatusError } from "./status-error.ts"
import { expensivePart } from "./wire/cheap-message.ts"
import { type JsonList, type ListBound, tooManyItems } from "./wire/json-list.ts"

/** A caller that waits for a response. `closed` becomes true when the caller stops waiting. */
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
 * A function that responds to a call. Returns a value if the response is available immediately, and otherwise a
 * promise. The function throws or rejects with StatusError; any other error is a fault of the service.
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

/** Functions that write the bytes of responses, for methods whose responses the protobuf library writes too slowly. */
export type Serializers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]?: (
    message: MessageShape<Service["method"][Name]["output"]>,
  ) => Uint8Array
}

/**
 * Functions that convert a JSON body to the form that protobuf reads, for methods that accept other forms too. The
 * functions throw StatusError for an invalid body.
 */
export type JsonReaders<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]?: (body: JsonValue) => JsonValue
}

/** A method that can be called through the gRPC server and the HTTP server. */
export interface Call {
  /** Path of the method, such as "/sluice.v1.RateLimiter/ShouldForwardRequest". */
  readonly path: string
  readonly output: DescMessage
  /** Maximum bytes of a request. Absent if the limit for a single decision applies. */
  readonly maxBytes?: number | undefined
  /** The response to a request that is too large to be decided. Absent if the caller receives the error. */
  readonly tooLarge?: TooLarge | undefined
  /** The list field of the message that may contain many items. */
  readonly list?: ListBound | undefined
  /**
   * Counts the requests in a batch without reading them. Absent if a call contains a single request. The JSON body of
   * a batch is a JsonList, or `{}` if the body is empty.
   */
  readonly requestsIn?: ((body: Body) => number) | undefined
  /** Throws StatusError if the token would be refused for every message. Called before the message is read. */
  authorize(token: string | undefined): void
  /**
   * Responds to a binary message with a binary message. Throws or rejects with StatusError; any other error is a fault
   * of the service.
   */
  answerBytes(message: Uint8Array, context: CallContext): Uint8Array | Promise<Uint8Array>
  /**
   * Takes a parsed JSON body. Returns the response as JSON, either as a string or as bytes. Throws and rejects like
   * `answerBytes`.
   */
  answerJson(body: JsonBody, context: CallContext): string | Uint8Array | Promise<string | Uint8Array>
}

/** The response to gRPC requests that are too large, for callers that would forward the request after an error. */
export interface TooLarge {
  /** Maximum bytes of a request. */
  readonly maxBytes: number
  /**
   * Number of bytes that ordinary requests do not exceed. A request with at most this many bytes receives an error if
   * the service is overloaded.
   */
  readonly longBytes: number
  /** The response as a message. */
  readonly answer: Uint8Array
}

/** Returns the maximum bytes of a gRPC request. `maxMessageBytes` applies to calls that define no limit. */
export function mostBytesOf({ tooLarge, maxBytes }: Call, maxMessageBytes: number): number {
  return tooLarge?.maxBytes ?? maxBytes ?? maxMessageBytes
}

/** Creates the error for a request of `bytes` bytes that exceeds its limit. */
export function tooLong(bytes: number, most: number): StatusError {
  return new StatusError(
    Code.RESOURCE_EXHAUSTED,
    `The message has ${bytes} bytes; at most ${most} are accepted.`,
  )
}

/**
 * Returns the response to a request that is refused for its size. Undefined if the caller receives the error instead.
 */
export function answerInstead(call: Call, bytes: number, error: StatusError): Uint8Array | undefined {
  const isForSize = error instanceof OverloadError || error.code === Code.RESOURCE_EXHAUSTED
  return isForSize && bytes > (call.tooLarge?.longBytes ?? bytes) ? call.tooLarge?.answer : undefined
}

/** A JSON body, parsed or not yet parsed. */
export type JsonBody = JsonValue | JsonList
/** A received message: its bytes, or its JSON. */
export type Body = Uint8Array | JsonBody

/** Options for all calls of a service, or for some of its methods. */
export interface CallOptions<Service extends DescService> {
  /** See `Call.authorize`. `method` is the name in code, such as "getService". */
  authorize(token: string | undefined, method: string): void
  readonly serializers?: Serializers<Service>
  readonly jsonReaders?: JsonReaders<Service>
  readonly lists?: { readonly [Name in keyof Service["method"]]?: ListBound }
}

/**
 * Creates the calls of a service, each with its handler. Leaves out the methods named in `Own`, whose calls are created
 * elsewhere.
 */
export function callsOf<Service extends DescService, Own extends string = never>(
  service: Service,
  handlers: Omit<Handlers<Service>, Own>,
  options: CallOptions<Service>,
): Call[] {
  const { serializers, jsonReaders, lists } = options
  return service.methods.flatMap(({ localName, name, input, output }) => {
    const handle = handlers[localName as keyof typeof handlers] as unknown as AnyHandler | undefined
    if (handle === undefined) return []
    const serialize =
      (serializers?.[localName as keyof Serializers<Service>] as AnySerializer | undefined) ??
      ((message: AnyMessage) => toBinary(output, message))
    const readJson = jsonReaders?.[localName as keyof JsonReaders<Service>] ?? ((body: JsonValue) => body)
    const toText = (message: AnyMessage): string => jsonText(output, message)
    const list = lists?.[localName as keyof typeof lists] as ListBound | undefined
    return {
      path: `/${service.typeName}/${name}`,
      output,
      list,
      authorize: (token) => options.authorize(token, localName),
      answerBytes(message, context) {
        const answer = handle(readBytes(input, message, list), context)
        return answer instanceof Promise ? answer.then(serialize) : serialize(answer)
      },
      answerJson(body, context) {
        const answer = handle(readJsonBody(input, readJson(body as JsonValue)), context)
        return answer instanceof Promise ? answer.then(toText) : toText(answer)
      },
    } satisfies Call
  })
}

type AnyMessage = MessageShape<DescMessage>
type AnyHandler = Handler<AnyMessage, AnyMessage>
type AnySerializer = (message: AnyMessage) => Uint8Array

/** Maximum cost of a binary message. Envoy may send 64 descriptors with 32 entries each, which cost 21,000. */
const MOST_COST = 32_768
/** Maximum cost of a binary message with a list, such as 1,000 rules with 100 addresses each. */
const MOST_LIST_COST = 131_072

/**
 * Reads a binary message. Throws StatusError if the bytes are not a valid message, or if it has so many fields that
 * reading it would take too long.
 */
export function readBytes<Desc extends DescMessage>(
  input: Desc,
  bytes: Uint8Array,
  list?: ListBound,
): MessageShape<Desc> {
  const most = list === undefined ? MOST_COST : MOST_LIST_COST
  let expensive: ReturnType<typeof expensivePart>
  try {
    const number = input.fields.find(({ localName }) => localName === list?.name)?.number
    expensive = expensivePart(input, bytes, most, number, list?.mostCounted)
    if (expensive === undefined) return fromBinary(input, bytes, { readUnknownFields: false })
  } catch {
    throw notAMessage(input)
  }
  if (expensive === "items") throw tooManyItems(list as ListBound)
  throw new CostlyMessageError(Code.INVALID_ARGUMENT, "The message has too many fields; send fewer.")
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
  requireShortIntegers(input, body)
  try {
    return fromJson(input, body, { ignoreUnknownFields: false })
  } catch (error) {
    const message = `${place} is not a valid ${input.typeName}: ${(error as Error).message}`
    throw new StatusError(Code.INVALID_ARGUMENT, message)
  }
}

/** Maximum characters of an integer in JSON. BigInt takes quadratic time: 14 ms for 131,072 digits. */
const LONGEST_INTEGER = 100

/** Throws StatusError if a field for a 64-bit integer contains a string that is too long for an integer. */
function requireShortIntegers({ fields }: DescMessage, body: JsonValue): void {
  if (typeof body !== "object" || body === null) return
  for (const { jsonName, name, fieldKind, scalar, message } of fields) {
    if (fieldKind === "enum" || !(message !== undefined || INTEGERS.has(scalar))) continue
    const value = (body as JsonObject)[jsonName] ?? (body as JsonObject)[name]
    if (message !== undefined) {
      const all = Array.isArray(value) ? value : fieldKind === "map" ? Object.values(value ?? {}) : [value]
      for (const each of all) requireShortIntegers(message, each as JsonValue)
    } else if (typeof value === "string" && value.length > LONGEST_INTEGER) {
      throw invalidArgument({ field: name, description: `has ${value.length} characters; send an integer` })
    }
  }
}

const INTEGERS: ReadonlySet<ScalarType | undefined> = new Set([ScalarType.INT64, ScalarType.UINT64])

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
