import {
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf"
import type { ClosingResponse } from "@sluice/core"

/** Who asks, as long as it does: it is closed when nobody waits for the answer any more. */
export type Asking = ClosingResponse

/** What a door knows of a call beside its request. */
export interface CallContext {
  readonly asking: Asking
  /** Of `Authorization: Bearer …`. */
  readonly token: string | undefined
  /** Address of who has sent it, for the log. */
  readonly peer: string
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

/** What makes the bytes of answers, for those methods where it has to be quicker than the library does it. */
export type Serializers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]?: (
    message: MessageShape<Service["method"][Name]["output"]>,
  ) => Uint8Array
}

/** A method that can be called, whichever door the call comes in by. */
export interface Call {
  /** "/sluice.v1.RateLimiter/ShouldForwardRequest". */
  readonly path: string
  readonly input: DescMessage
  readonly output: DescMessage
  readonly handle: Handler<MessageShape<DescMessage>, MessageShape<DescMessage>>
  /** The bytes of an answer. */
  readonly serialize: (message: MessageShape<DescMessage>) => Uint8Array
}

/** The calls of a service, each with its handler. */
export function callsOf<Service extends DescService>(
  service: Service,
  handlers: Handlers<Service>,
  serializers: Serializers<Service> = {},
): Call[] {
  return service.methods.map(({ localName, name, input, output }) => {
    const serialize = serializers[localName as keyof Serializers<Service>] as Call["serialize"] | undefined
    return {
      path: `/${service.typeName}/${name}`,
      input,
      output,
      handle: handlers[localName as keyof Handlers<Service>] as unknown as Call["handle"],
      serialize: serialize ?? ((message) => toBinary(output, message)),
    }
  })
}

/** The token of `Authorization: Bearer …` (RFC 6750 section 2.1); undefined where there is none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? "")?.[1]
}
