import { readFileSync } from "node:fs"
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from "node:http2"
import { connect } from "node:net"
import { connect as connectTls, type TLSSocket } from "node:tls"
import { create, toBinary } from "@bufbuild/protobuf"
import {
  RegisterServiceRequestSchema,
  ShouldForwardRequestRequestSchema,
  ShouldForwardRequestsRequestSchema,
} from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"

/** The ports of the service, and the token for registering rules. */
export interface Target {
  readonly grpcPort: number
  readonly httpPort: number
  readonly token: string
}

export const HOST = "127.0.0.1"
export const SINGLE = "/sluice.v1.RateLimiter/ShouldForwardRequest"
export const MANY = "/sluice.v1.RateLimiter/ShouldForwardRequests"
export const REGISTER = "/sluice.v1.RateLimiter/RegisterService"

const file = (name: string): Buffer =>
  readFileSync(new URL(`../../test/fixtures/tls/${name}`, import.meta.url))
/** The TLS options with which a client trusts the service. */
export const TRUST = { ca: file("ca.pem"), servername: "localhost" }

/** Returns a message with the gRPC prefix. */
export function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

/** Connects over TLS from an address of this machine. */
export function openTls(port: number, localAddress: string, ALPNProtocols: string[]): TLSSocket {
  const socket = connect({ host: HOST, port, localAddress })
  socket.on("error", () => undefined)
  return connectTls({ socket, ...TRUST, ALPNProtocols })
}

/** Connects over TLS and HTTP/2 from an address of this machine. */
export function openSession({ grpcPort }: Target, localAddress: string): ClientHttp2Session {
  const url = `https://${HOST}:${grpcPort}`
  const session = connectHttp2(url, { createConnection: () => openTls(grpcPort, localAddress, ["h2"]) })
  return session.on("error", () => undefined)
}

/** Begins a gRPC call. */
export function beginCall(session: ClientHttp2Session, path: string, token?: string): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  })
  return stream.on("error", () => undefined)
}

const asked = (service: string, user: string) => ({ service, request: JSON.stringify({ user }) })

/** Encodes a request for a decision of a service. */
export function single(service: string, user: string): Uint8Array {
  return toBinary(
    ShouldForwardRequestRequestSchema,
    create(ShouldForwardRequestRequestSchema, asked(service, user)),
  )
}

/** Encodes a batch of requests for decisions of a service. */
export function batch(service: string, count: number): Uint8Array {
  const requests = Array.from({ length: count }, (_, index) => asked(service, `user-${index % 1_000}`))
  const message = create(ShouldForwardRequestsRequestSchema, { requests, brief: true })
  return toBinary(ShouldForwardRequestsRequestSchema, message)
}

/** Encodes the registration of many rules. */
export function manyRules(service: string, count: number, limit: number): Uint8Array {
  const rules = Array.from({ length: count }, (_, index) => ({
    name: `rule-${index}`,
    field: "user",
    rate: { requestsPerUnit: limit, unit: "minute" },
    match: { methods: ["GET"], path: `/resource-${index}/:id` },
  }))
  return toBinary(RegisterServiceRequestSchema, create(RegisterServiceRequestSchema, { service, rules }))
}
