import { soundTime } from "../../ground/clock.ts"
import type { CounterKey, Refund } from "../../stores/store.ts"
import { HeldPermits } from "./held-permits.ts"
import { type Holding, holdMsOf } from "./holding.ts"
import { MovedPermits } from "./moved-permits.ts"
import { Renewer, type RenewerOptions } from "./renewer.ts"

/** The permits of a rule in this process. */
export interface PermitCounts {
  /** Number of permits that requests of this process hold now. */
  readonly held: number
  /** Milliseconds for which the oldest of these permits has been held. 0 if none is held. */
  readonly oldestMs: number
  /** Number of permits that this process has renewed since it began. */
  readonly renewed: number
  /** Number of permits that ended although their requests were in progress, since the process began. */
  readonly lost: number
}

/**
 * The permits that this process holds. A decision holds its permits until they are released, and a renewer keeps them
 * counted in the store until then.
 */
export class Ledger {
  readonly #held = new HeldPermits()
  readonly #moved = new MovedPermits()
  readonly #options: RenewerOptions
  readonly #renewer: Renewer

  constructor(options: RenewerOptions) {
    this.#options = options
    this.#renewer = new Renewer(this.#held, options)
  }

  /**
   * Holds permits that a decision has taken. `startMs` is the start of their window, and `nowMs` is the time of the
   * decision, both by the store's clock. Without `startMs`, the permits were taken without the store.
   */
  hold(
    owner: object,
    { policy, partition }: CounterKey,
    permits: number,
    startMs: number | undefined,
    nowMs: number,
  ): Holding {
    const sinceMs = soundTime(this.#options.clock)
    const holding: Holding = { policy, partition, permits, sinceMs, startMs, owner }
    this.#held.add(holding)
    this.#renewer.watch(policy, sinceMs, startMs === undefined ? undefined : nowMs)
    return holding
  }

  /** Number of permits that this process holds. */
  get permits(): number {
    return this.#held.permits
  }

  /** Number of permits in a counter that this process holds, or has moved to reservations that may be in progress. */
  heldIn(counter: CounterKey): number {
    return this.#held.permitsIn(counter) + this.#moved.permitsIn(counter, this.storeMs)
  }

  /** The permits of each rule, by the rule's name. Undefined if no rule has ever had permits. */
  get counts(): Readonly<Record<string, PermitCounts>> | undefined {
    const nowMs = soundTime(this.#options.clock)
    const counts = new Map<string, { held: number; oldestMs: number; renewed: number; lost: number }>()
    for (const [name, { renewed, lost }] of this.#renewer.past) {
      counts.set(name, { held: 0, oldestMs: 0, renewed, lost })
    }
    for (const { policy, permits, sinceMs } of this.#held) {
      const own = counts.get(policy.name)
      if (own === undefined) continue
      own.held += permits
      own.oldestMs = Math.max(own.oldestMs, Math.floor(nowMs - sinceMs))
    }
    return counts.size === 0 ? undefined : Object.fromEntries(counts)
  }

  /**
   * Releases permits in the store within `withinMs`. Waits for their renewals in flight, because these move the permits
   * to another window. Rejects if the store fails. The permits then end by themselves.
   */
  async release(holdings: readonly Holding[], withinMs: number): Promise<void> {
    for (const holding of holdings) this.#held.delete(holding)
    for (const { renewal } of holdings) if (renewal !== undefined) await renewal
    // No destructuring with rest here: it takes longer than the rest of a release.
    const refunds: Refund[] = []
    for (const { policy, partition, permits, startMs } of holdings) {
      if (startMs === undefined) continue
      refunds.push({ policy, partition, units: permits, after: { startMs, current: permits, previous: 0 } })
    }
    if (refunds.length > 0) await this.#options.store.refund(refunds, withinMs)
  }

  /** No longer renews these permits, because a reservation has them, which any process may renew and settle. */
  moveOut(holdings: readonly Holding[]): void {
    for (const holding of holdings) {
      this.#held.delete(holding)
      this.reserved(holding, holding.permits)
    }
  }

  /** Counts permits of a reservation that was made or renewed here. */
  reserved(counter: CounterKey, permits: number): void {
    const nowMs = this.storeMs
    this.#moved.add(counter, permits, nowMs + holdMsOf(counter.policy), nowMs)
  }

  /** Ends the permits of a reservation that was settled or renewed here. */
  settled(counter: CounterKey): void {
    this.#moved.remove(counter)
  }

  /** A lower bound of the store's current time, in epoch milliseconds. */
  get storeMs(): number {
    return this.#renewer.storeMs
  }

  /** Stops renewing. The permits go back when their requests end, or end by themselves. */
  close(): void {
    this.#renewer.close()
  }
}
