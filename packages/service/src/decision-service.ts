import type { Server } from "@grpc/grpc-js"
import type { Limiter, RuleBook, RuleRegistry } from "@sluice/core"
import { type Call, callsOf, type Handlers } from "./calls.ts"
import { cannotListen } from "./cannot-listen.ts"
import { clients } from "./contract/clients.ts"
import { Forwarding } from "./contract/forward.ts"
import { forwardMany } from "./contract/forward-many.ts"
import { registering } from "./contract/register.ts"
import { withRequestText } from "./contract/request-object.ts"
import { falseAfter } from "./deadlines.ts"
import type { AskedRequest } from "./deciding/asked-request.ts"
import { ServiceGuards, type SharedOptions } from "./deciding/service-guards.ts"
import { type UnknownServices, Unregistered } from "./deciding/unregistered.ts"
import type { ConnectionBound, Door, DoorListeners, GrpcReader, Overload } from "./door.ts"
import { rateLimiting } from "./envoy/should-rate-limit.ts"
import { RateLimitService } from "./gen/envoy/service/ratelimit/v3/rls_pb.ts"
import { RateLimiter } from "./gen/sluice/v1/rate_limiter_pb.ts"
import { createGrpcDoor, type GrpcBounds } from "./grpc/grpc-door.ts"
import { createHttpDoor } from "./http/http-door.ts"
import type { Audit } from "./registering/audit.ts"
import { type Tokens, tokens } from "./registering/tokens.ts"
import type { Tls } from "./tls.ts"
import { answerBytes } from "./wire/answer-bytes.ts"

/** Bounds of what callers may send. */
export interface Bounds extends GrpcBounds {
  /** Bytes of a batch, and of rules that are registered. Default 4 MiB, or `maxMessageBytes` if that is more. */
  readonly maxBatchBytes?: number | undefined
  /** Requests in one ShouldForwardRequests. */
  readonly maxRequests: number
}

/** What a decision service is made of. Who makes book, store and registry closes them. */
export interface DecisionServiceParts {
  /** The rules of every service. */
  readonly book: RuleBook
  /** Where services register their rules. Undefined where rules are registered elsewhere. */
  readonly registry: RuleRegistry | undefined
  /** What all services share: the store and how to decide without it. */
  readonly shared: SharedOptions
  /** What is answered of a service without rules. */
  readonly unknownServices: UnknownServices
  /** The tokens of callers that change the rules of services. */
  readonly tokens: Tokens
  /** The tokens of callers that have requests of services decided. Absent or empty: anybody may. */
  readonly decideTokens?: Tokens | undefined
  /** Whether anybody may register rules where there are no tokens. */
  readonly isRegistrationOpen: boolean
  /** Where changes of rules are written down. */
  readonly audit: Audit
  /** What callers may send, at most. */
  readonly bounds: Bounds
  /** What both doors prove who they are with. Absent: they speak without TLS. */
  readonly tls?: Tls | undefined
  /**
   * Whether plain gRPC calls, which are one uncompressed message and its answer, are answered beside @grpc/grpc-js at half its CPU time.
   * Default true. With false, @grpc/grpc-js answers every call, with the same statuses.
   */
  readonly plainCalls?: boolean | undefined
  /** Puts more services on the gRPC server, such as its health. */
  addTo?(server: Server): void
  /** Told of every limiter before its first decision, for metrics. */
  onLimiter(limiter: Limiter<AskedRequest>, service: string): void
  /** Told of every request to a service without rules. */
  onUnknownService(): void
  /** Told of what is a fault of the service itself. */
  onFault(error: unknown, path: string): void
  /**
   * Told of every call when it is answered, for metrics: its path, the code of gRPC that its answer has, and how many milliseconds it
   * took from when its request had come. `reader` says what has read a gRPC call. Absent: no clock is read.
   */
  onAnswered?(door: Door, path: string, code: number, durationMs: number, reader?: GrpcReader): void
  /** Called for every connection that was closed at once, because of the bound of all connections or of those from its address. */
  onRefusedConnection?(bound: ConnectionBound, peer: string): void
  /** Called for every call whose token is missing or wrong. */
  onWrongToken?(path: string, peer: string): void
  /** Called for every call that was refused because there was too much of something. */
  onOverload?(what: Overload, peer: string): void
  /** Called for every connection that was ended because the headers of its first request did not come in time. */
  onLateConnection?(peer: string): void
  /**
   * Called for every failed TLS handshake: why, as a code of OpenSSL or Node such as `ERR_SSL_HTTP_REQUEST`, `CERT_HAS_EXPIRED` or
   * `ERR_TLS_HANDSHAKE_TIMEOUT`, and the address of the peer if that is known. Not called for peers that only connect and go.
   */
  onFailedHandshake?(reason: string, peer: string | undefined): void
}

/** Where it listens; port 0 is any that is free. */
export interface ListenAddress {
  /** A name or an address: "0.0.0.0" is every one of this machine. */
  readonly host: string
  /** 0 to 65535. */
  readonly port: number
}

/** "127.0.0.1:8080", "[::1]:8080". */
export function shownAddress({ host, port }: ListenAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`
}

/** The ports that it listens on. */
export interface Ports {
  /** The one for gRPC. */
  readonly grpc: number
  /** The one for HTTP with JSON. */
  readonly http: number
}

/** The decision service with its two doors. */
export interface DecisionService {
  /** Of the services that it answers: "sluice.v1.RateLimiter". */
  readonly names: readonly string[]
  /** Listens, and resolves with the ports. */
  listen(grpc: ListenAddress, http: ListenAddress): Promise<Ports>
  /** Still answers, and asks who is connected over HTTP to come back by another connection, to another instance. */
  leave(): void
  /**
   * Takes no new calls, answers those in flight, and ends. Those that are not answered in time are cut off. Resolves with
   * whether all were.
   */
  close(timeoutMs: number): Promise<boolean>
}

/**
 * A decision service; it does nothing before it listens, by its method `listen`. Start its process with
 * `node --no-allocation-site-pretenuring`: otherwise V8 may take calls for long-lived, and keep each until a full collection.
 * @example
 * ```ts
 * import { createRuleBook } from "@sluice/core"
 * import { auditTo, createDecisionService, rulesInMemory, tokens } from "@sluice/service"
 *
 * const { source, registry } = rulesInMemory()
 * const service = createDecisionService({
 *   book: createRuleBook({ source }),
 *   registry,
 *   shared: {},
 *   unknownServices: "forward",
 *   tokens: tokens({ checkout: "s3cret" }),
 *   isRegistrationOpen: false,
 *   audit: auditTo({ info: console.log, warn: console.warn }),
 *   bounds: { maxMessageBytes: 1_048_576, maxInFlight: 1_000, arrivalMs: 10_000, maxRequests: 100 },
 *   onLimiter: () => {},
 *   onUnknownService: () => {},
 *   onFault: (error, path) => console.error(path, error),
 * })
 * ```
 */
export function createDecisionService(parts: DecisionServiceParts): DecisionService {
  const { book, shared, bounds, tls, plainCalls } = parts
  const listenersOf = (door: Door): DoorListeners => ({
    onFault: parts.onFault,
    onRefusedConnection: (bound, peer) => parts.onRefusedConnection?.(bound, peer),
    onWrongToken: (path, peer) => parts.onWrongToken?.(path, peer),
    onOverload: (what, peer) => parts.onOverload?.(what, peer),
    onLateConnection: (peer) => parts.onLateConnection?.(peer),
    onFailedHandshake: (reason, peer) => parts.onFailedHandshake?.(reason, peer),
    onAnswered: parts.onAnswered?.bind(parts, door),
  })
  const guards = new ServiceGuards(book, shared, parts.onLimiter)
  const unregistered = new Unregistered(parts.unknownServices, parts.onUnknownService)
  const decideTokens = parts.decideTokens ?? tokens({})
  const { maxBatchBytes = Math.max(DEFAULT_MAX_BATCH_BYTES, bounds.maxMessageBytes) } = bounds
  const forwarding = new Forwarding(guards, unregistered, decideTokens)
  const calls = [
    ...callsFor(parts, forwarding, guards),
    forwardMany(forwarding, bounds.maxRequests, decideTokens, (path, peer) =>
      parts.onWrongToken?.(path, peer),
    ),
    ...callsOf(RateLimitService, rateLimiting(guards, unregistered, decideTokens)),
  ].map((call) => (LONG.has(call.path) ? { ...call, maxBytes: maxBatchBytes } : call))
  const grpcDoor = createGrpcDoor(calls, {
    ...{ bounds, tls, plainCalls, listeners: listenersOf("grpc") },
    addTo: parts.addTo?.bind(parts),
  })
  const httpDoor = createHttpDoor(calls, bounds, listenersOf("http"), tls)
  return {
    names: [...new Set(calls.map(({ path }) => path.split("/")[1] as string))],
    async listen(grpc, http) {
      return {
        grpc: await grpcDoor.listen(grpc.host, grpc.port).catch(cannotListen("gRPC", shownAddress(grpc))),
        http: await httpDoor.listen(http.host, http.port).catch(cannotListen("HTTP", shownAddress(http))),
      }
    },
    leave: () => httpDoor.leave(),
    async close(timeoutMs) {
      guards.drain()
      const answered = Promise.all([grpcDoor.drain(), httpDoor.drain()]).then(() => true)
      const wasInTime = await falseAfter(timeoutMs, answered)
      grpcDoor.close()
      httpDoor.close()
      await guards.close()
      return wasInTime
    },
  }
}

/** Bytes of a long message by default: 4 MiB. */
const DEFAULT_MAX_BATCH_BYTES = 4 * 2 ** 20
/** The calls whose messages carry many requests, or rules. */
const LONG: ReadonlySet<string> = new Set(
  [RateLimiter.method.shouldForwardRequests, RateLimiter.method.registerService].map(
    ({ name }) => `/${RateLimiter.typeName}/${name}`,
  ),
)

function callsFor(parts: DecisionServiceParts, forwarding: Forwarding, guards: ServiceGuards): Call[] {
  const { book, registry, tokens, isRegistrationOpen: isOpen, audit } = parts
  const handlers = {
    shouldForwardRequest: (request, context) => forwarding.decide(request, context),
    ...registering({ registry, book, tokens, isOpen, audit }),
    ...clients({ guards, book, tokens, isOpen, audit }),
  } satisfies Omit<Handlers<typeof RateLimiter>, "shouldForwardRequests">
  return callsOf<typeof RateLimiter, "shouldForwardRequests">(
    RateLimiter,
    handlers,
    { shouldForwardRequest: answerBytes },
    { shouldForwardRequest: withRequestText },
  )
}
