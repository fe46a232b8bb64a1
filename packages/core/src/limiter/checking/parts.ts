import { Decider } from "../../decision/decider.ts"
import { ClosedError, textOf } from "../../ground/errors.ts"
import { SafeEvents } from "../../ground/events.ts"
import { Incident } from "../../ground/incident.ts"
import { createWarner, type Warner } from "../../ground/warnings.ts"
import { FactsReaders } from "../../request/facts-readers.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import type { ChargesLostEvent, RefundLostEvent, StoreEvent } from "../../stores/store.ts"
import { storeErrorOf } from "../../stores/store-error.ts"
import { lostChargesLine, lostRefundsLine } from "../events/lost-units.ts"
import { NearLimitWatch } from "../events/near-limit.ts"
import { OutageLog, timeoutWarning } from "../events/outage-log.ts"
import type { LimiterEvents } from "../interface/limiter.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import { createRuleContext, type RuleContext } from "../rule-set/rule-context.ts"
import { WaitingRoom } from "../waiting/waiting-room.ts"

/** The names of all events of a limiter. */
export const LIMITER_EVENTS: Readonly<Record<keyof LimiterEvents<unknown>, true>> = {
  decision: true,
  "near-limit": true,
  "store-error": true,
  degraded: true,
  recovered: true,
  rules: true,
  "rule-error": true,
  "rules-stale": true,
  evicted: true,
  "refund-lost": true,
  "charges-lost": true,
  warning: true,
  closed: true,
}

/** The parts of a limiter, which it shares with the limiters of its routes. */
export interface LimiterParts<Request> {
  readonly events: SafeEvents<LimiterEvents<Request>>
  readonly warner: Warner
  readonly context: RuleContext
  readonly nearLimit: NearLimitWatch<Request>
  readonly decider: Decider
  readonly waitingRoom: WaitingRoom
  /** The adapters' functions that read their frameworks' requests. */
  readonly factsReaders: FactsReaders
  /** Unsubscribes from the store, which may outlive the limiter, and logs what is not logged yet. */
  close(): void
}

/**
 * Creates the parts and connects them. A failure in one part is logged as a warning and emitted as an event. Throws if
 * the store is closed.
 */
export function createParts<Request>(options: ParsedOptions): LimiterParts<Request> {
  const { logger, store, storeTimeoutMs, instances, clock } = options
  const events = new SafeEvents<LimiterEvents<Request>>(LIMITER_EVENTS, (error, name) =>
    warner.once(
      "SLUICE_CALLBACK_FAILED",
      `A listener of "${name}" failed: ${textOf(error)}. Handle the error in the listener.`,
      `on ${name}`,
      error,
    ),
  )
  const warner = createWarner(logger, (warning) => events.emit("warning", warning))
  const outages = new OutageLog(warner, clock)
  // The limiter closed its own store because the server is stopping. That is not an outage, so it raises no alarm.
  const isClosedWithLimiter = (error: unknown) =>
    options.ownsStore &&
    (error instanceof ClosedError || (error instanceof Error && error.cause instanceof ClosedError))
  const context = createRuleContext(options, warner)
  const decider = new Decider({
    blocks: context.blocks,
    store,
    storeTimeoutMs,
    instances,
    clock,
    onDegraded(error, inForce) {
      if (isClosedWithLimiter(error)) return
      outages.began(error, inForce)
      events.emit("degraded", error)
    },
    onFailedAgain(error) {
      if (!isClosedWithLimiter(error)) outages.failedAgain(error)
    },
    onRecovered() {
      outages.ended()
      events.emit("recovered")
    },
    // In an outage every decision fails, so create an error only if there is a listener.
    onStoreError(error) {
      if (events.has("store-error")) events.emit("store-error", storeErrorOf(error))
    },
    onTimeouts: (timeouts) => warner.once("SLUICE_STORE_TIMEOUTS", timeoutWarning(timeouts, storeTimeoutMs)),
    onRefundLost: (error) => refundLost({ type: "refund-lost", error: storeErrorOf(error) }),
  })
  const lostRefunds = Incident.ofLosses(warner, clock)
  /** By data center. */
  const lostCharges = new Map<string, Incident>()
  const chargesLost = (event: ChargesLostEvent): void => {
    const lost = lostCharges.get(event.to) ?? Incident.ofLosses(warner, clock)
    lostCharges.set(event.to, lost)
    lost.add(lostChargesLine(event.error))
    events.emit("charges-lost", event)
  }
  const refundLost = (event: RefundLostEvent): void => {
    // The app closed the store on purpose.
    if (event.error.cause instanceof ClosedError) return
    lostRefunds.add(lostRefundsLine(event.error))
    events.emit("refund-lost", event)
  }
  const unsubscribe = store.subscribe?.((event: StoreEvent) => {
    if (event.type === "refund-lost") {
      refundLost(event)
      return
    }
    if (event.type === "charges-lost") {
      chargesLost(event)
      return
    }
    if (event.type === "warning") {
      warner.once(event.code, event.message, event.subject)
      return
    }
    warner.once(
      "SLUICE_STORE_TOO_SMALL",
      "The memory store is full and evicted a counter that was still in use, so its client may exceed the limit. Raise memoryStore({ maxKeys }).",
    )
    events.emit("evicted", event)
  })
  return {
    events,
    warner,
    decider,
    waitingRoom: new WaitingRoom(decider, clock),
    context,
    nearLimit: new NearLimitWatch(events, clock),
    factsReaders: new FactsReaders(takesAnything(options)),
    close() {
      unsubscribe?.()
      lostRefunds.close()
      for (const lost of lostCharges.values()) lost.close()
    },
  }
}

/**
 * True if a request may be something other than an object. Either the app's `fields` read it, or no rule reads the
 * request.
 */
function takesAnything({ hasExtractors, inline, rules }: ParsedOptions): boolean {
  const inCode = inline === undefined ? rules : [inline]
  // A source may load rules that read the request later.
  return hasExtractors || (Array.isArray(inCode) && inCode.every(countsAllRequests))
}

function countsAllRequests({ fields, match }: ParsedRule): boolean {
  return fields.length === 0 && match === undefined
}
