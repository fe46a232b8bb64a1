import { outsideRequests } from "../../ground/time.ts"
import { type LoopGauge, openGauge } from "./event-loop-gauge.ts"
import { afterSample, isOverdue, SAMPLE_EVERY_MS, UNKNOWN } from "./spare-capacity.ts"

/** The dependencies of a monitor. */
export interface MonitorDependencies {
  readonly openGauge: () => LoopGauge
  /** Returns the time of a monotonic clock, in milliseconds. */
  readonly now: () => number
  /**
   * Calls `call` every `ms` milliseconds without keeping the process alive. Returns a function that stops the calls.
   */
  readonly every: (ms: number, call: () => void) => () => void
}

/**
 * Watches the event loop while there is a lease, and reports whether there is spare capacity. Without a lease, the
 * monitor runs nothing and reports no spare capacity.
 */
export class SpareCapacityMonitor {
  readonly #dependencies: MonitorDependencies
  #leases = 0
  #known = UNKNOWN
  #sampledAtMs = 0
  #stop!: () => void

  constructor(parts: MonitorDependencies) {
    this.#dependencies = parts
  }

  /** Whether there is spare capacity right now. The call reads the clock once. */
  readonly isSpare = (): boolean =>
    this.#known.isSpare && !isOverdue(this.#dependencies.now() - this.#sampledAtMs)

  /**
   * Starts the monitor with the first lease. Returns a function that releases the lease; further calls of this
   * function are no-ops.
   */
  lease(): () => void {
    this.#leases++
    if (this.#leases === 1) this.#start()
    let isLeased = true
    return () => {
      if (!isLeased) return
      isLeased = false
      this.#leases--
      if (this.#leases === 0) this.#stop()
    }
  }

  #start(): void {
    const { openGauge, now, every } = this.#dependencies
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

/** The monitor of this process. Each worker thread has its own event loop, and therefore its own monitor. */
export const spareCapacityMonitor: SpareCapacityMonitor = new SpareCapacityMonitor({
  openGauge,
  now: () => performance.now(),
  every: (ms, call) => {
    const timer = outsideRequests(() => setInterval(call, ms).unref())
    return () => clearInterval(timer)
  },
})
