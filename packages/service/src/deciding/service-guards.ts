import { InvalidRuleError, type Limiter, type LimiterOptions, RuleSourceError } from "@sluice/core"
import { createGuard, type Guard } from "@sluice/core/adapters"
import type { Activity } from "@sluice/dashboard"
import type { Edition, RuleBook } from "@sluice/rules"
import { Code, StatusError } from "../status-error.ts"
import { type AskedRequest, amountOf, readerOf } from "./asked-request.ts"
import { serviceLog } from "./service-log.ts"

/** The limiter options that all services share: the store, and how to decide and respond without it. */
export type SharedOptions = Pick<
  LimiterOptions<AskedRequest>,
  "store" | "headers" | "onStoreFailure" | "storeTimeoutMs" | "instances" | "logger" | "clock"
>

/** The guard of a service, and facts about its rules. */
export interface ServiceGuard {
  readonly service: string
  readonly guard: Guard<AskedRequest>
  /** Deletes the records of what the guard has decided. */
  readonly forget: () => void
  /** Whether no rule reads a field of a request. */
  readonly readsNothing: boolean
  /** Whether a rule has no field, and therefore counts all requests together. */
  readonly countsAll: boolean
  /** Whether a rule holds requests that do not fit its limit. */
  readonly mayHold: boolean
}

/** The guards of all services that have rules. Each guard is created on the first request for its service. */
export class ServiceGuards {
  /** What the guards have decided lately. Undefined if it is not recorded. */
  readonly activity: Activity | undefined
  readonly #book: RuleBook
  readonly #shared: SharedOptions
  readonly #onLimiter: (limiter: Limiter<AskedRequest>, service: string) => void
  readonly #guards = new Map<string, ServiceGuard>()
  #isDraining = false
  readonly #forget: (event: { readonly service: string }) => void

  /** `onLimiter` is called with every limiter before its first decision. */
  constructor(
    book: RuleBook,
    shared: SharedOptions,
    onLimiter: (limiter: Limiter<AskedRequest>, service: string) => void,
    activity?: Activity,
  ) {
    this.#book = book
    this.#shared = shared
    this.#onLimiter = onLimiter
    this.activity = activity
    this.#forget = ({ service }) => {
      const known = this.#guards.get(service)
      if (known !== undefined) this.#guards.set(service, this.#told(known, service))
      if (this.#book.rulesOf(service) === undefined) void this.#end(service)
    }
    book.on("rules", this.#forget)
  }

  /**
   * Returns the guard of a service, as a value if the service has been requested before. Resolves with undefined for a
   * service without rules. Rejects with UNAVAILABLE if no rules could be loaded yet.
   */
  of(service: string): ServiceGuard | Promise<ServiceGuard | undefined> {
    return this.#guards.get(service) ?? this.#find(service)
  }

  /** Releases all held requests, and then holds no more requests. */
  drain(): void {
    this.#isDraining = true
    for (const { guard } of this.#guards.values()) guard.drain()
  }

  async close(): Promise<void> {
    this.#book.off("rules", this.#forget)
    await Promise.all([...this.#guards.keys()].map((service) => this.#end(service)))
  }

  async #find(service: string): Promise<ServiceGuard | undefined> {
    const edition = await this.#edition(service)
    if (edition === undefined) return undefined
    // Another request may have created the guard in the meantime.
    const known = this.#guards.get(service)
    if (known !== undefined) return known
    // Create no guard for a service that was removed in the meantime, because that guard would never be closed.
    if (this.#book.rulesOf(service) === undefined) return undefined
    const guard = createGuard<AskedRequest>(
      {
        ...this.#shared,
        ...{ service, rules: this.#book, fields: readerOf, units: amountOf },
        // Without rules, no guard is created, and the caller receives UNAVAILABLE.
        onRulesMissing: "deny",
        logger: serviceLog(this.#shared.logger, service),
      },
      (request) => (request as AskedRequest).facts,
    )
    if (this.#isDraining) guard.drain()
    const forget = this.activity?.record(guard.limiter) ?? (() => undefined)
    const made = this.#told({ guard, forget }, service)
    this.#guards.set(service, made)
    this.#onLimiter(guard.limiter, service)
    return made
  }

  async #edition(service: string): Promise<Edition | undefined> {
    try {
      return await this.#book.find(service)
    } catch (error) {
      // The book logs the error, and the caller can only retry.
      if (error instanceof RuleSourceError || error instanceof InvalidRuleError) throw noRulesYet(service)
      throw error
    }
  }

  #told({ guard, forget }: Pick<ServiceGuard, "guard" | "forget">, service: string): ServiceGuard {
    const rules = this.#book.rulesOf(service)?.rules ?? []
    return {
      ...{ service, guard, forget },
      readsNothing: rules.every(({ fields, match }) => fields.length === 0 && match === undefined),
      countsAll: rules.some(({ fields }) => fields.length === 0),
      mayHold: rules.some(
        ({ throttle }) =>
          throttle.kind === "queue" || (throttle.kind !== "hard" && throttle.queue !== undefined),
      ),
    }
  }

  async #end(service: string): Promise<void> {
    const known = this.#guards.get(service)
    this.#guards.delete(service)
    known?.forget()
    await known?.guard.close()
  }
}

function noRulesYet(service: string): StatusError {
  return new StatusError(
    Code.UNAVAILABLE,
    `No rules of service ${JSON.stringify(service)} could be loaded yet. Try again later; the log of the decision service contains the reason.`,
  )
}
