import type { Server } from "@grpc/grpc-js"
import type { Limiter } from "@sluice/core"
import { beforeDeadline } from "@sluice/core/kit"
import type { CounterKey } from "@sluice/core/stores"
import type { Activity } from "@sluice/dashboard"
import type { RuleBook, RuleRegistry } from "@sluice/rules"
import { type Call, callsOf, type Handlers } from "./calls.ts"
import { activityCalls } from "./contract/activity-calls.ts"
import { clients } from "./contract/clients.ts"
import { Forwarding } from "./contract/forward.ts"
import { forwardMany } from "./contract/forward-many.ts"
import { MOST_RULES, registering, requireAccess } from "./contract/register.ts"
import { withRequestText } from "./contract/request-object.ts"
import { ReservationTexts } from "./contract/reservation-text.ts"
import { ServiceReservations } from "./contract/reservations.ts"
import { withContractNames } from "./contract/rule-spellings.ts"
import { RESERVATION_LISTS, type SettlementEnd, type SettlingParts, settling } from "./contract/settling.ts"
import type { AskedRequest } from "./deciding/asked-request.ts"
import { ServiceGuards, type SharedOptions } from "./deciding/service-guards.ts"
import { type UnknownServices, Unregistered } from "./deciding/unregistered.ts"
import { envoyCalls } from "./envoy/should-rate-limit.ts"
import { RateLimiter } from "./gen/sluice/v1/rate_limiter_pb.ts"
import { createGrpcDoor } from "./grpc/grpc-door.ts"
import { GatewayChecks } from "./http/gateway-checks.ts"
import { createHttpDoor } from "./http/http-door.ts"
import type { Audit } from "./registering/audit.ts"
import { requireKnownToken, type Tokens, tokens } from "./registering/tokens.ts"
import type { DoorBounds, DoorListeners } from "./sockets/door.ts"
import { cannotListen, type ListenAddress, shownAddress } from "./sockets/listening.ts"
import type { Tls } from "./sockets/tls.ts"
import { answerBytes } from "./wire/answer-bytes.ts"

/** Bounds for the messages of callers. */
export interface Bounds extends DoorBounds {
  /**
   * Maximum bytes of a batch or of a registration of rules. The default is 4 MiB, or `maxMessageBytes` if this is
   * larger.
   */
  readonly maxBatchBytes?: number | undefined
  /** Maximum number of requests in one ShouldForwardRequests call. */
  readonly maxRequests: number
}

/** The parts of a decision service. The caller that creates the book, the store and the registry also closes them. */
export interface DecisionServiceParts extends DoorListeners {
  /** The rules of every service. */
  readonly book: RuleBook
  /** The registry for rules. Undefined if rules cannot be registered here. */
  readonly registry: RuleRegistry | undefined
  /** Options that all services share: the store, and how to decide without it. */
  readonly shared: SharedOptions
  /**
   * Returns the Redis key of a counter, which `ShowClient` includes in its response. Absent if Redis does not store
   * the counters.
   */
  readonly keyOf?: ((counter: CounterKey) => string) | undefined
  /** The response for a service without rules. */
  readonly unknownServices: UnknownServices
  /** Tokens of the callers that may change the rules of services. */
  readonly tokens: Tokens
  /** Tokens of the callers that may ask for decisions. If absent or empty, any caller may ask for decisions. */
  readonly decideTokens?: Tokens | undefined
  /**
   * Addresses of the gateways that may describe requests with HTTP headers, and of the proxies in front of them. The
   * format is the same as for the limiter option `trustedProxies`. Default: `["loopback"]`.
   */
  readonly trustedProxies?: readonly string[] | undefined
  /** Whether any caller may register rules if no tokens are configured. */
  readonly isRegistrationOpen: boolean
  /** The audit that records changes of rules. */
  readonly audit: Audit
  /** Limits for the messages and connections of callers. */
  readonly bounds: Bounds
  /** Certificate and key of both servers. If absent, the servers do not use TLS. */
  readonly tls?: Tls | undefined
  /**
   * Whether the service responds to plain gRPC calls with its own code, which takes half the CPU time of the grpc-js
   * library. A plain call consists of one uncompressed message and its response. Default true. If false, grpc-js
   * responds to every call, with the same statuses.
   */
  readonly plainCalls?: boolean | undefined
  /** Adds more services to the gRPC server, such as health checks. */
  addTo?(server: Server): void
  /** Called with every limiter before its first decision, for metrics. */
  onLimiter(limiter: Limiter<AskedRequest>, service: string): void
  /**
   * Records what each service decides, for the calls `ListClients` and `Overview`: `recordActivity([])` of
   * `@sluice/dashboard`. If absent, nothing is recorded.
   */
  readonly activity?: Activity | undefined
  /** Called for every request to a service without rules. */
  onUnknownService(): void
  /**
   * For how long each text of a reservation is accepted, in milliseconds. Default 600,000. A text is remembered for up to
   * twice this time after it was settled.
   */
  readonly reservationMs?: number | undefined
  /** Called for every settlement, unless the store or the rules are unavailable. */
  onSettlement?(end: SettlementEnd): void
}

/** The ports that a decision service listens on. */
export interface Ports {
  /** Port for gRPC. */
  readonly grpc: number
  /** Port for HTTP with JSON. */
  readonly http: number
}

/** The decision service with its two servers. */
export interface DecisionService {
  /** Names of the gRPC services that the decision service implements, such as "sluice.v1.RateLimiter". */
  readonly names: readonly string[]
  /**
   * Resolves with the limiter of a service, or with undefined if the service has no rules. Rejects with UNAVAILABLE if no rules
   * could be loaded yet.
   */
  limiterOf(service: string): Promise<Limiter<AskedRequest> | undefined>
  /** Starts listening, and resolves with the ports. */
  listen(grpc: ListenAddress, http: ListenAddress): Promise<Ports>
  /**
   * Prepares to shut down. Calls are still answered, but HTTP clients are asked to reconnect, so that they reach
   * another instance.
   */
  leave(): void
  /**
   * Stops accepting calls, responds to the calls in flight, and closes the service. Aborts the calls that are not
   * answered within the timeout. Resolves with true if all calls were answered.
   */
  close(timeoutMs: number): Promise<boolean>
}

/**
 * Creates a decision service. The service does nothing until its method `listen` is called.
 *
 * Start the process with `node --no-allocation-site-pretenuring`. Otherwise, V8 may treat calls as long-lived objects
 * and keep each of them in memory until a full garbage collection.
 * @example
 * ```ts
 * import { createRuleBook } from "@sluice/rules"
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
  const guards = new ServiceGuards(book, shared, parts.onLimiter, parts.activity)
  const unregistered = new Unregistered(parts.unknownServices, parts.onUnknownService)
  const decideTokens = parts.decideTokens ?? tokens({})
  const { maxBatchBytes = Math.max(DEFAULT_MAX_BATCH_BYTES, bounds.maxMessageBytes) } = bounds
  const texts = new ReservationTexts(parts.tokens, decideTokens)
  const reservations = new ServiceReservations(texts, parts.reservationMs ?? RESERVATION_MS)
  const forwarding = new Forwarding(guards, unregistered, decideTokens, reservations)
  const onWrongToken = (path: string, peer: string): void => parts.onWrongToken?.(path, peer)
  const onSettlement = (end: SettlementEnd): void => parts.onSettlement?.(end)
  const calls = [
    ...callsFor(parts, forwarding, guards, decideTokens, {
      guards,
      texts,
      decideTokens,
      onSettlement,
      onWrongToken,
    }),
    forwardMany(forwarding, bounds.maxRequests, decideTokens, onWrongToken),
    ...envoyCalls(guards, unregistered, decideTokens),
  ].map((call) => (LONG.has(call.path) ? { ...call, maxBytes: maxBatchBytes } : call))
  const grpcDoor = createGrpcDoor(calls, {
    ...{ bounds, tls, plainCalls, listeners: parts },
    addTo: parts.addTo?.bind(parts),
  })
  const checks = new GatewayChecks(forwarding, parts.trustedProxies)
  const isOpen = decideTokens.isEmpty || (parts.tokens.isEmpty && parts.isRegistrationOpen)
  const httpDoor = createHttpDoor(calls, bounds, parts, tls, checks, isOpen)
  return {
    names: [...new Set(calls.map(({ path }) => path.split("/")[1] as string))],
    limiterOf: async (service) => (await guards.of(service))?.guard.limiter,
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
      const wasInTime = await beforeDeadline(answered, timeoutMs, () => false)
      grpcDoor.close()
      httpDoor.close()
      await guards.close()
      return wasInTime
    },
  }
}

/** Default limit for the bytes of a long message: 4 MiB. */
const DEFAULT_MAX_BATCH_BYTES = 4 * 2 ** 20
/** Default time for which the text of a reservation is accepted: 10 minutes. */
const RESERVATION_MS = 600_000
const { shouldForwardRequests, registerService, settle, renew } = RateLimiter.method
/** Paths of the calls whose messages may contain many requests, rules or reservations. */
const LONG: ReadonlySet<string> = new Set(
  [shouldForwardRequests, registerService, settle, renew].map(
    ({ name }) => `/${RateLimiter.typeName}/${name}`,
  ),
)

function callsFor(
  parts: DecisionServiceParts,
  forwarding: Forwarding,
  guards: ServiceGuards,
  decideTokens: Tokens,
  settlingParts: SettlingParts,
): Call[] {
  const { book, registry, tokens, isRegistrationOpen: isOpen, audit, keyOf } = parts
  const handlers = {
    shouldForwardRequest: (request, context) => forwarding.decide(request, context),
    ...registering({ registry, book, tokens, isOpen, audit }),
    ...clients({ guards, book, tokens, isOpen, audit, keyOf }),
    ...activityCalls({ guards, book, tokens, isOpen }, parts.shared.clock),
    ...settling(settlingParts),
  } satisfies Omit<Handlers<typeof RateLimiter>, "shouldForwardRequests">
  return callsOf<typeof RateLimiter, "shouldForwardRequests">(RateLimiter, handlers, {
    authorize(token, method) {
      const isDecision = method === "shouldForwardRequest" || method in RESERVATION_LISTS
      if (!isDecision) requireAccess({ tokens, isOpen })
      requireKnownToken(isDecision ? decideTokens : tokens, token)
    },
    serializers: { shouldForwardRequest: answerBytes },
    jsonReaders: { shouldForwardRequest: withRequestText, registerService: withContractNames },
    lists: {
      ...RESERVATION_LISTS,
      registerService: { name: "rules", most: MOST_RULES, mostCounted: 2 * MOST_RULES },
    },
  })
}
