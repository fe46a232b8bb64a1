import { once } from "node:events"
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus"
import { MeterProvider } from "@opentelemetry/sdk-metrics"
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type Store,
  StoreUnavailableError,
} from "@sluice/core"
import { instrument } from "@sluice/otel"
import { redisStore } from "@sluice/redis"
import { liveRules } from "@sluice/rules"
import { mirroredStore, writeBackStore } from "@sluice/scale"
import { Redis } from "ioredis"
import type { AskedRequest } from "../../packages/service/src/deciding/asked-request.ts"
import { createMetrics } from "../../packages/service/src/program/metrics.ts"
import { createOperationsServer } from "../../packages/service/src/program/operations-server.ts"
import { until } from "../servers/until.ts"

/** The exported metrics. Maps each metric to its labels, and each label to its values. */
export type Exported = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>

const QUIET = { warn() {}, error() {} }
const CALL = "/sluice.v1.RateLimiter/ShouldForwardRequest"
const asked = (user: string): AskedRequest => ({ known: { user }, facts: {}, cost: 1, units: undefined })

/**
 * Drives limiters into every state that the metrics describe: refusals, a Redis that does not respond, lost charges,
 * a full memory store and rules from a source. Returns the metrics that an app's exporter and the decision service's
 * endpoint then write.
 */
export async function exportedMetrics(): Promise<{ readonly app: Exported; readonly service: Exported }> {
  const exporter = new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true })
  const meterProvider = new MeterProvider({ readers: [exporter] })
  const metrics = createMetrics({})
  const ending: (() => unknown)[] = [() => meterProvider.shutdown(), () => metrics.close()]
  const measured = (options: LimiterOptions<AskedRequest>): Limiter<AskedRequest> => {
    const limiter = createLimiter<AskedRequest>({ logger: QUIET, ...options })
    instrument(limiter, { meterProvider })
    metrics.onLimiter(limiter, limiter.status.service)
    ending.unshift(() => limiter.close())
    return limiter
  }
  try {
    await decideByRules(measured)
    await decideWithoutRedis(measured, ending)
    await loseCharges(measured, ending)
    const full = measured({ service: "full", ...PER_USER, store: memoryStore({ maxKeys: 1 }) })
    for (let user = 0; user < 50; user++) await full.decide(asked(`${user}`))
    refuseCallers(metrics)
    const app = createHttpServer((request, response) => exporter.getMetricsRequestHandler(request, response))
    const operations = createOperationsServer(() => Promise.reject(new Error("is not asked")), metrics)
    ending.push(
      () => app.close(),
      () => operations.close(),
    )
    await once(app.listen(0, "127.0.0.1"), "listening")
    const ports = {
      app: (app.address() as AddressInfo).port,
      service: await operations.listen({ host: "127.0.0.1", port: 0 }),
    }
    return { app: await scrape(ports.app), service: await scrape(ports.service) }
  } finally {
    for (const end of ending) await end()
  }
}

const PER_USER = {
  limit: 2,
  window: "1 hour",
  fields: { user: ({ known }: AskedRequest) => `${known.user}` },
  field: "user",
} as const
type Measured = (options: LimiterOptions<AskedRequest>) => Limiter<AskedRequest>

/** Decides requests by rules from a source. One rule refuses requests, and a shadow rule would. */
async function decideByRules(measured: Measured): Promise<void> {
  const { fields, ...rule } = PER_USER
  const rules = [
    { name: "enforced", notify: [50], ...rule },
    { name: "tried-out", shadow: true, ...rule, limit: 1 },
  ]
  const limiter = measured({
    service: "rules",
    rules: liveRules({ load: async () => ({ rules, problems: [], version: 7 }) }),
    onRulesMissing: "deny",
    fields,
  })
  await limiter.ready()
  for (let times = 0; times < 3; times++) await limiter.decide(asked("ann"))
}

/** Decides requests with a Redis server that accepts connections but never responds. */
async function decideWithoutRedis(measured: Measured, ending: (() => unknown)[]): Promise<void> {
  const sockets: Socket[] = []
  const server = createServer((socket) => void sockets.push(socket)).listen(0, "127.0.0.1")
  await once(server, "listening")
  const client = new Redis({ port: (server.address() as AddressInfo).port, lazyConnect: true })
  client.on("error", () => {})
  void client.connect().catch(() => {})
  const store = redisStore({ client })
  ending.push(() => {
    // Otherwise the store would continue to call the server, also during the tests of other files.
    store.close()
    client.disconnect()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const limiter = measured({
    service: "frozen",
    ...PER_USER,
    store,
    storeTimeoutMs: 5,
  })
  for (let times = 0; times < 8; times++) await limiter.decide(asked("ann"))
}

/** Loses charges, with stores in front of a shared store that confirms no charges. */
async function loseCharges(measured: Measured, ending: (() => unknown)[]): Promise<void> {
  const shared = (): Store => Object.assign(memoryStore(), { isShared: true })
  const broken = (): Store =>
    Object.assign(shared(), {
      refund() {
        throw new StoreUnavailableError("gone")
      },
    })
  const back = writeBackStore(broken(), { settleMs: 10 })
  const mirrored = mirroredStore({ near: shared(), far: { eu: broken() }, everyMs: 10 })
  ending.push(
    () => back.close?.(),
    () => mirrored.close?.(),
  )
  const limiters = [
    measured({ service: "back", ...PER_USER, store: back }),
    measured({ service: "mirrored", ...PER_USER, store: mirrored }),
  ]
  for (const limiter of limiters) await limiter.decide(asked("ann"))
  const isLost = ({ status }: Limiter<AskedRequest>): boolean =>
    [status.writeBack, ...Object.values(status.mirrors ?? {})].some((charges) => (charges?.lost ?? 0) > 0)
  await until("the charges are lost", () => limiters.every(isLost))
}

/**
 * Causes the counts that only the decision service has. The service's own tests cause each of these counts with real
 * calls.
 */
function refuseCallers(metrics: ReturnType<typeof createMetrics>): void {
  metrics.onPhase("ready")
  metrics.onUnknownService()
  metrics.onRefusedConnection("peer", "192.0.2.7")
  metrics.onLateConnection("192.0.2.7")
  metrics.onOverload("bytes", "192.0.2.7")
  metrics.onWrongToken(CALL, "192.0.2.7")
  metrics.onFailedHandshake("ERR_TLS_HANDSHAKE_TIMEOUT", "192.0.2.7")
  const codes = [0, 3, 14]
  for (const code of codes) metrics.onAnswered("grpc", CALL, code, 1, "plain")
  for (const code of codes) metrics.onAnswered("http", CALL, code, 1)
}

/** Reads metrics as Prometheus does. */
async function scrape(port: number): Promise<Exported> {
  const text = await (
    await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { connection: "close" } })
  ).text()
  const metrics = new Map<string, Map<string, Set<string>>>()
  for (const [, name = "", labels = ""] of text.matchAll(/^([a-z_]\w*)(?:\{(.*)\})? \S+/gm)) {
    const ofMetric = metrics.get(name) ?? new Map<string, Set<string>>()
    metrics.set(name, ofMetric)
    for (const [, label = "", value = ""] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      ofMetric.set(label, (ofMetric.get(label) ?? new Set<string>()).add(value))
    }
  }
  return metrics
}
