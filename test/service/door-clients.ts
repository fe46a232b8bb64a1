import { createRegistry, fromBinary, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf"
import { anyUnpack } from "@bufbuild/protobuf/wkt"
import type { ConnectError } from "@connectrpc/connect"
import { createConnectTransport } from "@connectrpc/connect-node"
import { Metadata } from "@grpc/grpc-js"
import { BadRequestSchema } from "../../packages/service/src/gen/google/rpc/error_details_pb.ts"
import { StatusSchema } from "../../packages/service/src/gen/google/rpc/status_pb.ts"
import { RateLimiter } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import type { Started } from "./started.ts"
import { openStranger } from "./stranger.ts"

/**
 * The result of a call, in a form that is the same for both servers. Members have names in snake_case, and 64-bit
 * integers are numbers.
 */
export interface Answered {
  /** The gRPC status; 0 for success. */
  readonly code: number
  readonly message: string
  /** The problems of the request, each with its field. */
  readonly violations: Readonly<Record<string, string>>
  readonly value: Readonly<Record<string, unknown>>
}

/** A client of one of the service's two servers. */
export interface Door {
  call(method: string, request: object, token?: string): Promise<Answered>
  close(): void
}

/** The servers, each with its name. */
export const DOORS: readonly (readonly [name: string, open: (started: Started) => Door])[] = [
  ["gRPC", openGrpc],
  ["HTTP", openHttp],
]

const DETAILS = createRegistry(BadRequestSchema)

/** The servers, and the HTTP server as a Connect client calls it, with binary messages. */
export const DOORS_AND_CONNECT = [...DOORS, ["Connect", openConnect] as const]

function openConnect({ http }: Started): Door {
  const transport = createConnectTransport({ baseUrl: http, httpVersion: "1.1", useBinaryFormat: true })
  return {
    async call(method, request, token) {
      const called = RateLimiter.methods.find(
        ({ name }) => name === method,
      ) as typeof RateLimiter.method.settle
      const message = fromJson(called.input, request as JsonValue)
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      try {
        const answer = await transport.unary(called, undefined, undefined, headers, message)
        const value = toJson(called.output, answer.message, { alwaysEmitImplicit: true, registry: DETAILS })
        return { code: 0, message: "", violations: {}, value: snake(value) as Body }
      } catch (error) {
        const { code, rawMessage } = error as ConnectError
        return { code, message: rawMessage, violations: {}, value: {} }
      }
    },
    close() {},
  }
}

function openGrpc({ grpc }: Started): Door {
  const stranger = openStranger(grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  return {
    async call(method, request, token) {
      const metadata = new Metadata()
      if (token !== undefined) metadata.set("authorization", `Bearer ${token}`)
      const called = await stranger.call(method, request, { metadata })
      if ("value" in called) return { code: 0, message: "", violations: {}, value: called.value }
      const { code, details, metadata: trailers } = called.error
      const [bytes] = trailers.get("grpc-status-details-bin")
      const status = fromBinary(StatusSchema, bytes as Buffer)
      const wrong = status.details.map((each) => anyUnpack(each, BadRequestSchema)?.fieldViolations ?? [])
      return { code, message: details, violations: byField(wrong.flat()), value: {} }
    },
    close: () => stranger.close(),
  }
}

/** The Connect error codes that the service returns: https://connectrpc.com/docs/protocol#error-codes */
const CODES: Readonly<Record<string, number>> = {
  invalid_argument: 3,
  not_found: 5,
  permission_denied: 7,
  failed_precondition: 9,
  aborted: 10,
  unavailable: 14,
  unauthenticated: 16,
}

function openHttp({ http }: Started): Door {
  return {
    async call(method, request, token) {
      const response = await fetch(`${http}/sluice.v1.RateLimiter/${method}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(request),
      })
      const body = (await response.json()) as Body
      if (response.ok) return { code: 0, message: "", violations: {}, value: snake(body) as Body }
      const wrong = (body.details ?? []).flatMap(({ debug }) => debug.fieldViolations)
      return {
        code: CODES[body.code as string] as number,
        message: body.message as string,
        violations: byField(wrong),
        value: {},
      }
    },
    close() {},
  }
}

interface Body extends Readonly<Record<string, unknown>> {
  readonly details?: readonly { readonly debug: { readonly fieldViolations: readonly Violation[] } }[]
}

interface Violation {
  readonly field: string
  readonly description: string
}

function byField(violations: readonly Violation[]): Record<string, string> {
  return Object.fromEntries(violations.map(({ field, description }) => [field, description]))
}

/** Returns the value with the names of the proto file. Numbers that JSON represents as strings become numbers. */
function snake(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snake)
  if (typeof value === "string") return /^\d+$/.test(value) ? Number(value) : value
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      snake(member),
    ]),
  )
}
