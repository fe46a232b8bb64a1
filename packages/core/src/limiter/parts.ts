import { Decider } from "../decision/decider.ts"
import { storeErrorOf } from "../decision/store-error.ts"
import { ClosedError, textOf } from "../ground/errors.ts"
import { SafeEvents } from "../ground/events.ts"
import { createWarner, type Warner } from "../ground/warnings.ts"
import { FactsReaders } from "../request/facts-readers.ts"
import type { ParsedRule } from "../rules/parsing/parsed-rule.ts"
import type { StoreEvent } from "../stores/store.ts"
import type { LimiterEvents } from "./limiter.ts"
import { LostRefunds } from "./lost-refunds.ts"
import type { ParsedOptions } from "./options/parse-options.ts"
import { OutageLog, timeoutWarning } from "./outage-log.ts"
import { createRuleContext, type RuleContext } from "./rule-set/rule-context.ts"
import { WaitingRoom } from "./waiting/waiting-room.ts"

/** The names of all events of a limiter. */
export const LIMITER_EVENTS: Readonly<Record<keyof LimiterEvents<unknown>, true>> = {
  decision: true,
  "store-error": true,
  degraded: true,
  recovered: true,
  rules: true,
  "rule-error": true,
  "rules-stale": true,
  evicted: true,
  "refund-lost": true,
  warning: true,
  closed: true,
}

/** What a limiter is made of, and shares with the limiters of its routes. */
export interface LimiterParts<Request> {
  readonly events: SafeEvents<LimiterEvents<Request>>
  readonly warner: Warner
  readonly context: RuleContext
  readonly decider: Decider
  readonly waitingRoom: WaitingRoom
  /** What the adapters know of their frameworks' requests. */
  readonly factsReaders: FactsReaders
  /** Stops listening to the store, which may outlive the limiter, and logs what is not logged yet. */
  close(): void
}

/** The parts, wired to each other: what fails in one is warned of and emitted as an event. A store that is closed throws. */
export function createParts<Request>(options: ParsedOptions): LimiterParts<Request> {
  const { logger, store, storeTimeoutMs, instances, clock } = options
  const events = new SafeEvents<LimiterEvents<Request>>(LIMITER_EVENTS, (error, name) =>
    warner.once(
      "SLUICE_CALLBACK_FAILED",
      `A listener of "${name}" failed: ${textOf(error)}.`,
      `on ${name}`,
      error,
    ),
  )
  const warner = createWarner(logger, (warning) => events.emit("warning", warning))
  const outages = new OutageLog(warner, clock)
  // By a server that is about to stop: nobody has to be woken.
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
    onDegraded(error) {
      if (!isClosedWithLimiter(error)) events.emit("degraded", error)
    },
    onRecovered() {
      outages.recovered()
      events.emit("recovered")
    },
    // In an outage that is each decision: an error is made only for who listens.
    onStoreError(error) {
      if (!isClosedWithLimiter(error)) outages.failed(error)
      if (events.has("store-error")) events.emit("store-error", storeErrorOf(error))
    },
    onTimeouts: (timeouts) => warner.once("SLUICE_STORE_TIMEOUTS", timeoutWarning(timeouts, storeTimeoutMs)),
    onRefundLost: (error) => lostRefunds.report(storeErrorOf(error)),
  })
  const lostRefunds = new LostRefunds(warner, clock, (error) =>
    events.emit("refund-lost", { type: "refund-lost", error }),
  )
  const unsubscribe = store.subscribe?.((event: StoreEvent) => {
    if (event.type === "refund-lost") {
      lostRefunds.report(event.error)
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
    factsReaders: new FactsReaders(takesAnything(options)),
    close() {
      unsubscribe?.()
      lostRefunds.close()
    },
  }
}

/** Whether what is no object may be a request: `fields` of the app read it, or no rule goes by anything of it. */
function takesAnything({ hasExtractors, inline, rules }: ParsedOptions): boolean {
  const inCode = inline === undefined ? rules : [inline]
  // What a source brings some day goes by something.
  return hasExtractors || (Array.isArray(inCode) && inCode.every(countsAllRequests))
}

function countsAllRequests({ fields, match }: ParsedRule): boolean {
  return fields.length === 0 && match === undefined
}
