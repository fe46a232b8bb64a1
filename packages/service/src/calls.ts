import type { DescMessage, DescMethodUnary, DescService, MessageShape } from "@bufbuild/protobuf"
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

/** A method that can be called, whichever door the call comes in by. */
export interface Call {
  /** "/sluice.v1.RateLimiter/ShouldForwardRequest". */
  readonly path: string
  readonly input: DescMessage
  readonly output: DescMessage
  readonly handle: Handler<MessageShape<DescMessage>, MessageShape<DescMessage>>
}

/** The calls of a service, each with its handler. */
export function callsOf<Service extends DescService>(service: Service, handlers: Handlers<Service>): Call[] {
  return service.methods.map(({ localName, name, input, output }) => ({
    path: `/${service.typeName}/${name}`,
    input,
    output,
    handle: handlers[localName as keyof Handlers<Service>] as unknown as Call["handle"],
  }))
}

/** The token of `Authorization: Bearer …` (RFC 6750 section 2.1); undefined where there is none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? "")?.[1]
}
