import type { Store } from "@sluice/core"
import { beforeDeadline, type MaybePromise } from "@sluice/core/kit"
import {
  BACKGROUND_REFUND_MS,
  type Check,
  type CounterKey,
  type Refund,
  type StoreReading,
  type StoreResult,
  type StoreStatus,
  storeErrorOf,
} from "@sluice/core/stores"
import { StoreWrapper } from "../in-front/store-wrapper.ts"
import type { Lease } from "./lease.ts"
import { Leases } from "./leases.ts"
import { type LeasedStoreOptions, type ParsedLeasedOptions, parseOptions } from "./options.ts"
import { SharedRequest } from "./shared-request.ts"
import { withoutHeld } from "./without-held.ts"

export type { LeasedStoreOptions } from "./options.ts"

/**
 * Creates a store in front of a store that processes share. For large limits, it books units ahead of time and grants
 * requests from them without asking the shared store. No limit is exceeded, because a lease ends with the window or
 * sub-window in which its units were booked. The guide "Scale" lists the exceptions: with a token bucket that refills
 * evenly, any window may admit at most 5 % of the limit more.
 *
 * A refusal comes from the shared store, or repeats its latest refusal for at most half of `leaseMs`. All checks of a
 * request are admitted and counted, or nothing is taken. No request waits for a booking. Unused units are refunded
 * after `leaseMs`. If a process is killed, the units that it holds stay taken until their window has passed.
 *
 * `close` gives back what is held, and then closes the shared store.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { leasedStore } from "@sluice/scale"
 * import { redisStore } from "@sluice/redis"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis(process.env.REDIS_URL ?? "redis://localhost:6379")
 * const store = leasedStore(redisStore({ client }))
 * const limiter = createLimiter({ service: "checkout", limit: 1_000_000, window: "1 minute", store })
 * ```
 * @throws {@link InvalidOptionError} if an option is invalid, or the store is not shared or already leased
 */
export function leasedStore(store: Store, options: LeasedStoreOptions = {}): Store {
  return new LeasedStore(store, parseOptions(store, options))
}

/** The implementation of `leasedStore`. */
export class LeasedStore extends StoreWrapper {
  readonly #leases: Leases

  constructor(store: Store, options: ParsedLeasedOptions) {
    super("leased store", store)
    this.#leases = new Leases(this.wrapped, options, (error) => {
      this.listeners.emit({ type: "refund-lost", error: storeErrorOf(error) })
    })
  }

  override get status(): StoreStatus {
    return { ...super.status, leases: this.#leases.counts }
  }

  take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult> {
    this.checkOpen()
    const check = checks[0]
    // Fast path: nearly always there is one check.
    if (check === undefined || checks.length > 1) return this.#takeAll(checks, withinMs)
    if (!this.#leases.mayLease(check.policy)) return this.wrapped.take(checks, withinMs)
    const nowMs = this.#leases.nowMs()
    const lease = this.#leases.of(check, nowMs)
    if (lease === undefined) return this.wrapped.take(checks, withinMs)
    lease.ask(check.cost, nowMs)
    if (!lease.covers(check.cost)) return this.#share(checks, [lease], nowMs, withinMs)
    const { counted, serverMs } = lease.grant(check.cost, nowMs)
    this.#leases.granted(check.cost)
    if (lease.isLow) this.#leases.book(lease, nowMs, withinMs)
    return { nowMs: serverMs, granted: true, checks: [counted], isRemembered: true }
  }

  async read(checks: readonly Check[], withinMs?: number): Promise<StoreReading> {
    this.checkOpen()
    const reading = await this.wrapped.read(checks, withinMs)
    return withoutHeld(checks, reading, this.#leases, this.#leases.nowMs())
  }

  refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void> {
    this.checkOpen()
    const rest = refunds.filter((refund) => !this.#leases.refund(refund))
    return this.refundRest(rest, refunds, withinMs)
  }

  async reset(keys: readonly CounterKey[], withinMs?: number): Promise<void> {
    this.checkOpen()
    const held = this.#leases.drop(keys)
    try {
      await this.resetWrapped(keys, this.#leases.inFlight, withinMs)
    } catch (error) {
      this.#leases.notReset(held, error)
      throw error
    } finally {
      // Units may have been booked while the store deleted the counters.
      this.#leases.drop(keys)
    }
  }

  protected async end(): Promise<void> {
    await beforeDeadline(this.#leases.close(), BACKGROUND_REFUND_MS, () => undefined)
    await this.wrapped.close()
  }

  #takeAll(checks: readonly Check[], withinMs: number | undefined): MaybePromise<StoreResult> {
    const nowMs = this.#leases.nowMs()
    const leases: (Lease | undefined)[] = []
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Check
      // A penalty counts the refusals of the check before it, so the store must see both.
      const isCounted = checks[i + 1]?.policy.algorithm === "penalty"
      const mayLease = !isCounted && this.#leases.mayLease(check.policy)
      const lease = mayLease ? this.#leases.of(check, nowMs) : undefined
      lease?.ask(check.cost, nowMs)
      leases.push(lease)
    }
    if (leases.every((lease) => lease === undefined)) return this.wrapped.take(checks, withinMs)
    return this.#share(checks, leases, nowMs, withinMs)
  }

  /** Takes a request of which the leases cover a part, or nothing. */
  #share(
    checks: readonly Check[],
    leases: readonly (Lease | undefined)[],
    nowMs: number,
    withinMs: number | undefined,
  ): MaybePromise<StoreResult> {
    const request = new SharedRequest(checks, leases, nowMs)
    const refusal = request.heldOff()
    if (refusal !== undefined) return refusal
    request.setAside()
    return this.#leases.ask(request, withinMs)
  }
}
