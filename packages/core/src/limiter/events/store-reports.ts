import type { DeciderOptions } from "../../decision/decider.ts"
import { ClosedError } from "../../ground/errors.ts"
import type { SafeEvents } from "../../ground/events.ts"
import { Incident } from "../../ground/incident.ts"
import type { Warner } from "../../ground/warnings.ts"
import type { ChargesLostEvent, RefundLostEvent, StoreEvent } from "../../stores/store.ts"
import { storeErrorOf } from "../../stores/store-error.ts"
import type { LimiterEvents } from "../interface/limiter.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import { lostChargesLine, lostPermitsLine, lostRefundsLine } from "./lost-units.ts"
import { OutageLog, timeoutWarning } from "./outage-log.ts"

type StoreListener = Pick<
  DeciderOptions,
  | "onDegraded"
  | "onFailedAgain"
  | "onRecovered"
  | "onStoreError"
  | "onTimeouts"
  | "onRefundLost"
  | "onCorrected"
  | "onPermitsLost"
>

/** Logs the failures and warnings of a limiter's store, and emits them as events. Throws if the store is closed. */
export class StoreReports<Request> {
  /** The callbacks that the decider calls. */
  readonly listener: StoreListener
  readonly #events: SafeEvents<LimiterEvents<Request>>
  readonly #warner: Warner
  readonly #options: ParsedOptions
  readonly #lostRefunds: Incident
  readonly #lostPermits: Incident
  /** By data center. */
  readonly #lostCharges = new Map<string, Incident>()
  readonly #unsubscribe: (() => void) | undefined

  constructor(options: ParsedOptions, events: SafeEvents<LimiterEvents<Request>>, warner: Warner) {
    const { store, clock } = options
    this.#options = options
    this.#events = events
    this.#warner = warner
    this.#lostRefunds = Incident.ofLosses(warner, clock)
    this.#lostPermits = Incident.ofLosses(warner, clock)
    this.listener = this.#listenerWith(new OutageLog(warner, clock))
    this.#unsubscribe = store.subscribe?.((event) => this.#report(event))
  }

  /** Unsubscribes from the store, which may outlive the limiter, and logs the losses that have not been logged yet. */
  close(): void {
    this.#unsubscribe?.()
    this.#lostRefunds.close()
    this.#lostPermits.close()
    for (const lost of this.#lostCharges.values()) lost.close()
  }

  #listenerWith(outages: OutageLog): StoreListener {
    const { ownsStore, storeTimeoutMs } = this.#options
    const events = this.#events
    // The limiter closed its own store because the server is stopping. Such a closed store is not an outage, so do
    // not report it.
    const isClosedWithLimiter = (error: unknown): boolean =>
      ownsStore &&
      (error instanceof ClosedError || (error instanceof Error && error.cause instanceof ClosedError))
    return {
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
      onTimeouts: (timeouts) =>
        this.#warner.once("SLUICE_STORE_TIMEOUTS", timeoutWarning(timeouts, storeTimeoutMs)),
      onPermitsLost: (policy, permits, error) => {
        this.#lostPermits.add(lostPermitsLine(policy, error), permits)
        events.emit("permits-lost", { policy, permits, ...(error !== undefined && { error }) })
      },
      onRefundLost: (error) => this.#reportRefund({ type: "refund-lost", error: storeErrorOf(error) }),
      onCorrected: (refunds, degraded) => events.emit("corrected", refunds, degraded),
    }
  }

  #report(event: StoreEvent): void {
    if (event.type === "refund-lost") this.#reportRefund(event)
    else if (event.type === "charges-lost") this.#reportCharges(event)
    else if (event.type === "warning") this.#warner.once(event.code, event.message, event.subject)
    else {
      this.#warner.once(
        "SLUICE_STORE_TOO_SMALL",
        "The memory store is full and evicted a counter that was still in use, so its client may exceed the limit. Raise memoryStore({ maxKeys }).",
      )
      this.#events.emit("evicted", event)
    }
  }

  #reportRefund(event: RefundLostEvent): void {
    // Do not report a refund that failed because the app closed the store on purpose.
    if (event.error.cause instanceof ClosedError) return
    this.#lostRefunds.add(lostRefundsLine(event.error))
    this.#events.emit("refund-lost", event)
  }

  #reportCharges(event: ChargesLostEvent): void {
    const lost = this.#lostCharges.get(event.to) ?? Incident.ofLosses(this.#warner, this.#options.clock)
    this.#lostCharges.set(event.to, lost)
    lost.add(lostChargesLine(event.error))
    this.#events.emit("charges-lost", event)
  }
}
