import { type Called, openStranger } from "./stranger.ts"

/** A descriptor, as its entries in order or as the whole message of the protocol. */
export type Descriptor =
  | Readonly<Record<string, string>>
  | { readonly entries: readonly { readonly key: string; readonly value: string }[] }

/** The response of ShouldRateLimit, without absent members. */
export interface EnvoyAnswer {
  readonly overall: string
  /** One line for each descriptor, such as "OK", or "OK per-user 5/MINUTE 4 left 60 s" if a limit applies. */
  readonly statuses: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly metadata: Readonly<Record<string, unknown>>
}

/** A gateway that calls the service as Envoy does. The gateway shares only the proto files with the service. */
export interface EnvoyAsking {
  /** Resolves with the response. Rejects with the gRPC error. */
  ask(domain: string, descriptors: readonly Descriptor[], hits?: number): Promise<EnvoyAnswer>
  /** Sends any request. Resolves with the returned value or the error. */
  call(request: object, options?: { readonly deadline?: number }): Promise<Called>
  close(): void
}

/** Opens a gateway for the service at "host:port". */
export function openEnvoy(address: string): EnvoyAsking {
  const stranger = openStranger(
    address,
    "envoy/service/ratelimit/v3/rls.proto",
    "envoy.service.ratelimit.v3.RateLimitService",
  )
  const call: EnvoyAsking["call"] = (request, options) => stranger.call("ShouldRateLimit", request, options)
  return {
    call,
    async ask(domain, descriptors, hits = 0) {
      const called = await call({
        domain,
        descriptors: descriptors.map(descriptorOf),
        hits_addend: hits,
      })
      if ("error" in called) throw called.error
      return told(called.value as unknown as Answer)
    },
    close: () => stranger.close(),
  }
}

function descriptorOf(descriptor: Descriptor): object {
  if (Array.isArray(descriptor.entries)) return descriptor
  return { entries: Object.entries(descriptor).map(([key, value]) => ({ key, value })) }
}

/** A response in the shape of the proto files. */
interface Answer {
  readonly overall_code: string
  readonly statuses: readonly {
    readonly code: string
    readonly current_limit: {
      readonly requests_per_unit: number
      readonly unit: string
      readonly name: string
    } | null
    readonly limit_remaining: number
    readonly duration_until_reset: { readonly seconds: number; readonly nanos: number } | null
  }[]
  readonly response_headers_to_add: readonly { readonly key: string; readonly value: string }[]
  readonly raw_body: Buffer
  readonly dynamic_metadata: { readonly fields: Readonly<Record<string, Value>> } | null
}

/** A protobuf `Value`, of which exactly one member is set. */
type Value = Readonly<Record<string, unknown>>

function told(answer: Answer): EnvoyAnswer {
  return {
    overall: answer.overall_code,
    statuses: answer.statuses.map(({ code, current_limit: limit, limit_remaining, duration_until_reset }) => {
      if (limit === null) return code
      const { seconds = 0, nanos = 0 } = duration_until_reset ?? {}
      const reset = nanos === 0 ? `${seconds} s` : `${seconds} s ${nanos} ns`
      return `${code} ${limit.name} ${limit.requests_per_unit}/${limit.unit} ${limit_remaining} left ${reset}`
    }),
    headers: Object.fromEntries(answer.response_headers_to_add.map(({ key, value }) => [key, value])),
    body: answer.raw_body.toString(),
    metadata: Object.fromEntries(
      Object.entries(answer.dynamic_metadata?.fields ?? {}).map(([name, value]) => [name, plain(value)]),
    ),
  }
}

function plain(value: Value): unknown {
  const [[kind, held] = []] = Object.entries(value)
  return kind === "listValue" ? (held as { readonly values: readonly Value[] }).values.map(plain) : held
}
