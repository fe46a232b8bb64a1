import { vi } from "vitest"
import type { Holding } from "../../packages/core/src/decision/permits/holding.ts"
import { Ledger } from "../../packages/core/src/decision/permits/ledger.ts"
import type { ManualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Refund, Store } from "../../packages/core/src/stores/store.ts"
import { isNotApplied } from "../../packages/core/src/stores/store-error.ts"
import { PART_MS, Server } from "./server.ts"
import type { HeldPermit, NewHolder, PermitHolder, RefundStore } from "./world.ts"

const { counter } = new Server()

/** A mistake of a process, to show that the bounds notice it. */
export type Mistake =
  /** The process believes that a renewal has arrived as soon as it is sent. */
  | "believes-without-reply"
  /** A release does not wait for a renewal that is in flight. */
  | "releases-during-renewal"

/** A permit, and its renewal in flight. */
interface Permit {
  startMs: number
  renewal?: Promise<void> | undefined
  /** The part in which renewals had an unknown outcome, and how many. */
  unknown: { readonly partMs: number; readonly times: number }
}

/**
 * The rules of a process, as short as possible. The process renews once per part, at its point, what is counted in
 * earlier parts. No permit has two renewals in flight, and a release waits for a renewal. The process names the present
 * part by the lowest estimate of the server's time.
 */
class ModelHolder implements PermitHolder {
  readonly #held = new Set<Permit>()
  readonly #store: RefundStore
  readonly #clock: ManualClock
  readonly #point: number
  readonly #mistake: Mistake | undefined
  readonly #closed = new AbortController()
  #aheadMs = 0

  constructor(store: RefundStore, clock: ManualClock, point: number, mistake: Mistake | undefined) {
    this.#store = store
    this.#clock = clock
    this.#point = 0.1 + 0.2 * point
    this.#mistake = mistake
    void this.#renewInEachPart()
  }

  hold(_owner: object, startMs: number, storeMs: number): HeldPermit {
    this.#aheadMs = storeMs - this.#clock.now()
    const permit: Permit = { startMs, unknown: { partMs: 0, times: 0 } }
    this.#held.add(permit)
    return permit
  }

  release(permit: HeldPermit): void {
    void this.#release(permit as Permit)
  }

  async #release(permit: Permit): Promise<void> {
    this.#held.delete(permit)
    if (this.#mistake !== "releases-during-renewal") await permit.renewal
    await this.#store.refund([refund(1, permit.startMs)]).catch(() => undefined)
  }

  close(): void {
    this.#closed.abort()
  }

  async #renewInEachPart(): Promise<void> {
    const { signal } = this.#closed
    try {
      while (!signal.aborted) {
        const restMs = PART_MS - (this.#lowestMs % PART_MS)
        await this.#clock.wait(restMs + this.#point * PART_MS, signal)
        this.#renew()
      }
    } catch (error) {
      // Otherwise, the process has ended.
      if (!signal.aborted) throw error
    }
  }

  #renew(): void {
    const partMs = this.#partMs
    // The server's clock has stepped back if a part is in the future. The server has moved the permit to an earlier part,
    // which may have ended since. So the renewal counts the permit again.
    for (const permit of this.#held) if (permit.startMs > partMs) permit.startMs = 0
    const due = [...this.#held].filter(({ startMs, renewal, unknown }) => {
      const isTriedTwice = unknown.partMs === partMs && unknown.times >= 2
      return startMs < partMs && renewal === undefined && !isTriedTwice
    })
    for (const startMs of new Set(due.map((permit) => permit.startMs))) {
      const group = due.filter((permit) => permit.startMs === startMs)
      const call = this.#call(group, partMs)
      for (const permit of group) permit.renewal = call
    }
  }

  async #call(group: readonly Permit[], partMs: number): Promise<void> {
    const call = this.#store.refund([refund(-group.length, group[0]?.startMs ?? 0)])
    if (this.#mistake === "believes-without-reply") for (const permit of group) permit.startMs = partMs
    try {
      await call
      for (const permit of group) permit.startMs = partMs
    } catch (error) {
      for (const permit of group) {
        const { unknown } = permit
        const times = unknown.partMs === partMs ? unknown.times : 0
        if (!isNotApplied(error)) permit.unknown = { partMs, times: times + 1 }
      }
      if (this.#lowestMs - partMs < 0.7 * PART_MS) void this.#renewAgain()
    }
    for (const permit of group) permit.renewal = undefined
  }

  async #renewAgain(): Promise<void> {
    await this.#clock.wait(PART_MS / 8, this.#closed.signal).then(
      () => this.#renew(),
      () => undefined,
    )
  }

  get #lowestMs(): number {
    return this.#clock.now() + this.#aheadMs
  }

  get #partMs(): number {
    return this.#lowestMs - (this.#lowestMs % PART_MS)
  }
}

function refund(units: number, startMs: number): Refund {
  return { ...counter, units, after: { startMs, current: 0, previous: 0 } }
}

/** Creates processes that follow the rules, or that make one mistake. */
export function modelHolder(mistake?: Mistake): NewHolder {
  return (store, clock, point) => new ModelHolder(store, clock, point, mistake)
}

/** Creates processes with the ledger of a limiter. */
export const ledgerHolder: NewHolder = (store, clock, point) => {
  const onPermitsLost = () => undefined
  // The ledger draws the point of its renewals.
  const random = vi.spyOn(Math, "random").mockReturnValue(point)
  const ledger = new Ledger({ store: store as Store, clock, onPermitsLost })
  random.mockRestore()
  return {
    hold: (owner, startMs, storeMs) => ledger.hold(owner, counter, 1, startMs, storeMs),
    release: (permit) => void ledger.release([permit as Holding], 10_000).catch(() => undefined),
    close: () => ledger.close(),
  }
}
