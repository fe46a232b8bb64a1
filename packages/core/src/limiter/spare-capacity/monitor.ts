import { outsideRequests } from "../../ground/time.ts"
import { type LoopGauge, openGauge } from "./event-loop-gauge.ts"
import { afterSample, isOverdue, SAMPLE_EVERY_MS, UNKNOWN } from "./spare-capacity.ts"

/** What a monitor goes by. */
export interface MonitorParts {
  readonly openGauge: () => LoopGauge
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Calls back every so many milliseconds without holding the process; yields the function that ends it. */
  readonly every: (ms: number, call: () => void) => () => void
}

/**
 * Watches the event loop while somebody has a lease, and says whether there is capacity to spare. Without a lease it
 * runs nothing and knows nothing.
 */
export class SpareCapacityMonitor {
  readonly #parts: MonitorParts
  #leases = 0
  #known = UNKNOWN
  #sampledAtMs = 0
  #stop!: () => void

  constructor(parts: MonitorParts) {
    this.#parts = parts
  }

  /** Whether there is capacity to spare right now. Costs a look at the clock. */
  readonly isSpare = (): boolean => this.#known.isSpare && !isOverdue(this.#parts.now() - this.#sampledAtMs)

  /** Begins to watch unless it does so already; yields the function that gives the lease back, once. */
  lease(): () => void {
    this.#leases++
    if (this.#leases === 1) this.#start()
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#leases--
      if (this.#leases === 0) this.#stop()
    }
  }

  #start(): void {
    const { openGauge, now, every } = this.#parts
    const gauge = openGauge()
    this.#sampledAtMs = now()
    const end = every(SAMPLE_EVERY_MS, () => {
      this.#known = afterSample(this.#known, gauge.sample())
      this.#sampledAtMs = now()
    })
    this.#stop = () => {
      end()
      gauge.stop()
      this.#known = UNKNOWN
    }
  }
}

/** The one of this process; each worker thread has an event loop, and so a monitor, of its own. */
export const spareCapacityMonitor: SpareCapacityMonitor = new SpareCapacityMonitor({
  openGauge,
  now: () => performance.now(),
  every: (ms, call) => {
    const timer = outsideRequests(() => setInterval(call, ms).unref())
    return () => clearInterval(timer)
  },
})
