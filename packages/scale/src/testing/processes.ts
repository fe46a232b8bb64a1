import { type Clock, type Store, StoreUnavailableError } from "@sluice/core"
import type { Check, Refund, StoreReading, StoreResult } from "@sluice/core/stores"
import { methodsOf } from "../../../core/src/stores/testing/methods-of.ts"
import type { Simulation } from "./simulation.ts"

/** The delays and faults of calls in the network. */
export interface Network {
  /** Returns the latency to the store or back, in milliseconds. */
  delayMs(): number
  /** Returns "call" if a call is lost before the store applies it, or "reply" if the reply is lost afterwards. */
  loses(): "nothing" | "call" | "reply"
}

/** The order and the server's time in which the store decided a check. */
export interface Decided {
  readonly nth: number
  readonly serverMs: number
}

/** Creates the store of a process, in front of the shared store. */
export type Wrap = (remote: Store, clock: Clock) => Store

/** A process whose store is in front of a shared store, behind a slow network. */
export class Process {
  readonly store: Store
  /** The checks that the shared store has decided. */
  readonly decided = new WeakMap<Check, Decided>()
  /** Calls in flight. */
  calls = 0
  #isAlive = true

  constructor(shared: Store, simulation: Simulation, network: Network, aheadMs: number, wrap: Wrap) {
    const call = <Answer>(work: () => Answer): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const lost = network.loses()
        this.calls++
        const settle = (run: () => void): void =>
          simulation.after(network.delayMs(), () => {
            this.calls--
            // A killed process handles no replies.
            if (this.#isAlive) run()
          })
        const fail = () => settle(() => reject(new StoreUnavailableError("lost")))
        simulation.after(network.delayMs(), () => {
          if (lost === "call") return fail()
          const answer = work()
          if (lost === "reply") return fail()
          settle(() => resolve(answer))
        })
      })
    const remote: Store = {
      ...methodsOf(shared),
      isShared: true,
      take: (checks) =>
        call(() => {
          const answer = shared.take(checks) as StoreResult
          const decided = { nth: simulation.nth(), serverMs: answer.nowMs }
          for (const check of checks) this.decided.set(check, decided)
          return answer
        }),
      read: (checks) => call(() => shared.read(checks) as StoreReading),
      refund: (refunds: readonly Refund[]) => call(() => shared.refund(refunds) as undefined),
      reset: (keys) => call(() => shared.reset(keys) as undefined),
      close: () => undefined,
    }
    this.store = wrap(remote, simulation.clock(aheadMs))
  }

  /** Kills the process. Calls in flight are applied, but their replies are dropped. */
  kill(): void {
    this.#isAlive = false
  }
}
