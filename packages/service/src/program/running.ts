import { createRuleBook } from "@sluice/rules"
import type { Overload } from "../bounds/in-flight.ts"
import { createDecisionService } from "../decision-service.ts"
import { auditTo } from "../registering/audit.ts"
import { tokens } from "../registering/tokens.ts"
import { cannotListen, shownAddress } from "../sockets/listening.ts"
import { createPage, openActivity } from "./activity-page.ts"
import { createCallersLog } from "./callers-log.ts"
import { openCounters } from "./counters.ts"
import { followFirstLoad } from "./first-load.ts"
import { createHealth } from "./health.ts"
import type { Log } from "./log.ts"
import type { Metrics } from "./metrics.ts"
import { openRules } from "./open-rules.ts"
import { createOperationsServer, type ReadyReport } from "./operations-server.ts"
import { oncePerOutage } from "./outage-log.ts"
import { createReadiness } from "./readiness.ts"
import type { Settings } from "./settings/settings-table.ts"
import { isRegistrationOpen, shownSettings } from "./settings/shown-settings.ts"
import { readTls, warnOfDates } from "./tls.ts"

/** A running service. */
export interface Running {
  /**
   * Shuts down. Reports that the service is not ready, pauses, stops accepting calls, responds to the calls in
   * flight, and closes everything. Resolves with true if all calls were answered in time.
   */
  drain(): Promise<boolean>
}

const REFUSED_CONNECTION = {
  all: "Connections are refused, because --max-connections is reached. Raise this limit if the callers are legitimate.",
  peer: "Connections are refused, because this peer has reached --max-connections-per-peer. Raise this limit for a gateway or proxy.",
} as const

const OVERLOAD: Readonly<Record<Overload, string>> = {
  arriving:
    "Calls are refused, because too many requests are arriving. Raise --max-in-flight or add instances.",
  bytes:
    "Calls are refused, because unfinished or unanswered requests use too much memory. Raise --max-unfinished-bytes or add instances.",
  "in-flight":
    "Calls are refused, because this caller or service uses its whole share of --max-in-flight. Raise this limit or add instances.",
  held: "Calls are refused, because queuing rules hold too many calls of this caller or service. Raise --max-in-flight.",
}

/** Starts the service. If the service cannot run, closes everything and rejects with an Error that explains why. */
export async function start(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
  log: Log,
  metrics: Metrics,
): Promise<Running> {
  const tls = readTls(settings)
  if (tls !== undefined) warnOfDates(settings, tls, log)
  /** Functions that close what has been opened, to be called in reverse order. */
  const opened: (() => unknown)[] = []
  const closeAll = async (): Promise<void> => {
    for (const close of opened.splice(0).reverse()) await close()
  }
  try {
    opened.push(() => metrics.close())
    const counters = await openCounters(settings, log)
    opened.push(() => counters.close())
    const rules = await openRules(settings, env, log)
    opened.push(() => rules.close())
    const logger = oncePerOutage(log)
    const book = createRuleBook({ source: rules.source, services: "all", logger: log })
    opened.push(() => book.close())
    const endFirstLoad = followFirstLoad(book, log)
    const health = createHealth()
    const logCaller = createCallersLog(log)
    const { storeTimeoutMs, onStoreFailure, instances, headers } = settings
    const audit = auditTo(log)
    const activity = openActivity(settings, counters.board)
    opened.push(() => activity?.stop())
    const service = createDecisionService({
      ...{ book, registry: rules.registry, tls, keyOf: counters.keyOf },
      ...{ bounds: settings, plainCalls: settings.plainCalls, unknownServices: settings.unknownServices },
      ...{ reservationMs: settings.reservationMs, activity },
      shared: { store: counters.store, storeTimeoutMs, onStoreFailure, instances, headers, logger },
      tokens: tokens(settings.tokens ?? {}),
      decideTokens: tokens(settings.decideTokens ?? {}),
      trustedProxies: settings.trustedProxies,
      isRegistrationOpen: isRegistrationOpen(settings),
      audit,
      onLimiter: metrics.onLimiter,
      onUnknownService: metrics.onUnknownService,
      onAnswered: metrics.onAnswered,
      onSettlement: metrics.onSettlement,
      onFault: (err, path) =>
        log.error({ err, path }, "A call failed because of an internal error. See err for the cause."),
      onRefusedConnection(bound, peer) {
        metrics.onRefusedConnection(bound, peer)
        logCaller(`connection ${bound}`, { peer }, REFUSED_CONNECTION[bound])
      },
      onLateConnection(peer) {
        metrics.onLateConnection(peer)
        logCaller(
          "late",
          { peer },
          "Connections are closed, because their first request did not arrive within --arrival-time.",
        )
      },
      onOverload(what, peer) {
        metrics.onOverload(what, peer)
        logCaller(`overload ${what}`, { peer }, OVERLOAD[what])
      },
      onWrongToken(path, peer) {
        metrics.onWrongToken(path, peer)
        logCaller(
          `token ${path}`,
          { path, peer },
          "Calls are refused, because their token is missing or wrong. Give the caller a valid token.",
        )
      },
      onInvalidCheck: (reason, peer) =>
        logCaller(
          "check",
          { reason, peer },
          "Checks of a gateway fail, so it does not forward requests. Correct its configuration; reason says what is wrong.",
        ),
      onFailedHandshake(reason, peer) {
        metrics.onFailedHandshake(reason, peer)
        logCaller(
          `handshake ${reason}`,
          { reason, peer },
          "A TLS handshake failed. Check the TLS settings of the caller.",
        )
      },
      addTo: (server) => health.addTo(server),
    })
    const readiness = createReadiness((phase) => {
      metrics.onPhase(phase)
      health.say(phase === "ready", service.names)
      log.info({ phase }, `The service is ${phase}.`)
    })
    health.say(false, service.names)
    let areLoaded = false
    const report = async (): Promise<ReadyReport> => ({
      status: readiness.phase,
      rules: areLoaded ? "loaded" : "loading",
      store: { kind: counters.kind, status: (await counters.isReachable()) ? "reachable" : "degraded" },
    })
    const loaded = (): void => {
      areLoaded = true
      endFirstLoad()
      // Log only changes after the first load, because that load would log a line for each service.
      book.on("rules", ({ service: of, change, version, names }) =>
        log.info({ service: of, change, version, rules: names }, "The rules of a service have changed."),
      )
      readiness.rulesLoaded()
    }
    if (rules.mustLoadAtOnce) await book.ready()
    const source = activity && { activity, limiterOf: service.limiterOf }
    const page = source && createPage(settings, source, audit, log)
    const operations = createOperationsServer(report, metrics, page)
    opened.push(() => operations.close())
    let isDown = false
    opened.push(() => isDown || service.close(0))
    const place = shownAddress(settings.operations)
    const ports = {
      operations: await operations.listen(settings.operations).catch(cannotListen("operations", place)),
      ...(await service.listen(settings.grpc, settings.http)),
    }
    log.info({ ports, settings: shownSettings(settings) }, "sluice-service is listening.")
    const ending = new AbortController()
    book.ready({ retry: true, signal: ending.signal }).then(loaded, () => undefined)
    return {
      async drain() {
        readiness.drain()
        service.leave()
        await new Promise((resolve) => setTimeout(resolve, settings.drainPauseMs))
        health.endWatches()
        ending.abort()
        isDown = true
        const wasInTime = await service.close(settings.drainMs)
        await closeAll()
        return wasInTime
      },
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}
