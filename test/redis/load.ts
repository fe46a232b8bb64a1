import { createLimiter, type Decision, type RequestFacts, type Store } from "@sluice/core"
import type { LimiterSettings } from "@sluice/core/adapters"
import { afterEach, expect } from "vitest"
import { endsWithin } from "../servers/ends-within.ts"
import { until } from "../servers/until.ts"

const DEADLINE_MS = 50
/**
 * Warnings that a busy process may cause, because even a healthy Redis then responds too late. Refunds and charges
 * after such a timeout may fail because of the simulated fault.
 */
const OF_A_BUSY_PROCESS = ["SLUICE_STORE_TIMEOUTS", "SLUICE_REFUND_LOST", "SLUICE_CHARGES_LOST"]

/**
 * Codes of log lines that have no event. An outage may have several causes, and a server that sends invalid replies
 * also sends an old time.
 */
const NOT_EVENTS = ["SLUICE_DEGRADED_FURTHER", "SLUICE_STORE_CLOCK_BACK"]

const unhandled: unknown[] = []
const closers: (() => unknown)[] = []
/** The outages of each asker in a test, as events and as codes of log lines. */
const told: { readonly events: readonly string[]; readonly lines: readonly string[] }[] = []
process.on("unhandledRejection", (reason) => unhandled.push(reason))
/**
 * Closes everything that each test has opened, and checks the test's events and log lines. Every test file must call
 * this, because a worker imports this module only once for many files.
 */
export function checkEachTest(): void {
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
    expect(unhandled.splice(0)).toEqual([])
    for (const { events, lines } of told.splice(0)) {
      expect(events).toEqual(events.map((_, nth) => (nth % 2 === 0 ? "degraded" : "recovered")))
      expect(lines).toEqual(events.map((event) => `SLUICE_${event.toUpperCase()}`))
    }
  })
}

/** Registers a function to call after the test. The function that was registered last is called first. */
export function afterwards(close: () => unknown): void {
  closers.push(close)
}

export interface Asker {
  /**
   * "degraded" and "recovered" events. These events must alternate and be logged; `checkEachTest` checks this after
   * each test.
   */
  readonly events: readonly string[]
  /** Decisions so far. */
  readonly decisions: readonly Decision[]
  /** Number of decisions that arrived after the deadline. */
  late: number
  ask(partition?: string, cost?: number): Promise<Decision>
  /**
   * Repeats a request until `degraded` of its decision has this value, and returns that decision. On a busy machine,
   * even a healthy Redis may miss the deadline.
   */
  askUntil(degraded: boolean, partition?: string): Promise<Decision>
  /** Repeats requests until the end of the outage is reported. */
  askUntilRecovered(): Promise<void>
  /** True if the next decision waits for nothing outside this process. */
  decidesAtOnce(): Promise<boolean>
  /**
   * Sends about 2,000 requests per second, by default for four partitions in turn. The returned function stops the
   * load and waits for all requests.
   */
  load(partitionOf?: (nth: number) => string): () => Promise<void>
  /** Units that were granted and counted in the store, according to the decisions. */
  granted(): number
}

/** Creates a limiter on a store, and functions that send requests to the limiter. */
export function asker(
  store: Store,
  { limit = 1_000_000, window = "1 day", ...options }: LimiterSettings<RequestFacts> = {},
): Asker {
  const events: string[] = []
  const lines: string[] = []
  const decisions: Decision[] = []
  told.push({ events, lines })
  const log = ({ code }: { readonly code: string }) => {
    if (!OF_A_BUSY_PROCESS.includes(code) && !NOT_EVENTS.includes(code)) lines.push(code)
  }
  let aheadMs = 0
  const limiter = createLimiter({
    limit,
    window,
    service: "faults",
    logger: { warn: log, error: log },
    store,
    clock: { now: () => Date.now() + aheadMs },
    ...options,
  })
  limiter.on("degraded", () => events.push("degraded"))
  limiter.on("recovered", () => events.push("recovered"))
  afterwards(() => limiter.close())
  const deadlineMs = options.storeTimeoutMs ?? DEADLINE_MS

  /** Whether the store has responded. */
  let hasCounted = false
  const self: Asker = {
    events,
    decisions,
    late: 0,
    async ask(partition = "192.0.2.1", cost = 1) {
      const deciding = limiter.decide({ remoteAddress: partition }, { cost })
      // The store sets the deadlines of all requests at the end of the current callback. Start the measurement after
      // that, so that a stall of this process delays both.
      queueMicrotask(async () => {
        // The first reply to a store restarts the timeout of its first requests, also if it comes late.
        const mostMs = hasCounted ? deadlineMs : 2 * deadlineMs
        if (!(await endsWithin(mostMs, deciding))) self.late++
      })
      const decision = await deciding
      hasCounted ||= !decision.degraded
      decisions.push(decision)
      return decision
    },
    async askUntil(degraded, partition) {
      let decision: Decision | undefined
      await until(`a decision is ${degraded ? "" : "not "}degraded`, async () => {
        decision = await self.ask(partition)
        return decision.degraded === degraded
      })
      return decision as Decision
    },
    async askUntilRecovered() {
      let nth = 0
      await until("the end of the outage is told", async () => {
        // An outage ends after ten seconds without a failure, and the next outage is logged only after a minute.
        aheadMs += 60_000
        // Use a new partition each time, because a cached refusal would prove nothing.
        await self.ask(oneEach(nth++))
        return events.at(-1) !== "degraded"
      })
    },
    async decidesAtOnce() {
      let isDecided = false
      self.ask().then(() => {
        isDecided = true
      })
      for (let i = 0; i < 20; i++) await Promise.resolve()
      return isDecided
    },
    load(partitionOf = (nth) => `192.0.2.${(nth % 4) + 1}`) {
      const asked: Promise<Decision>[] = []
      const timer = setInterval(() => {
        for (let i = 0; i < 4; i++) asked.push(self.ask(partitionOf(asked.length)))
      }, 5)
      const stop = async () => {
        clearInterval(timer)
        await Promise.all(asked)
      }
      // Also stop the load when a test fails.
      afterwards(stop)
      return stop
    },
    granted: () =>
      decisions.reduce((sum, { degraded, allowed, cost }) => sum + (allowed && !degraded ? cost : 0), 0),
  }
  return self
}

/**
 * Returns a different partition for each request. So if a key contains more than one unit, a request was counted twice.
 */
export function oneEach(nth: number): string {
  return `10.${nth >> 16}.${(nth >> 8) & 255}.${nth & 255}`
}
