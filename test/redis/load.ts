import {
  createLimiter,
  type Decision,
  type LimiterSettings,
  type RequestFacts,
  type Store,
} from "@sluice/core"
import { afterEach, expect } from "vitest"
import { endsWithin } from "../servers/ends-within.ts"
import { until } from "../servers/until.ts"

const DEADLINE_MS = 50
/** When this process is busy, a healthy Redis answers too late. Giving those units back may meet the fault. */
const OF_A_BUSY_PROCESS = ["SLUICE_STORE_TIMEOUTS", "SLUICE_REFUND_LOST"]

const unhandled: unknown[] = []
const closers: (() => unknown)[] = []
/** What each asker of a test was told of outages, as events and as codes of what is logged. */
const told: { readonly events: readonly string[]; readonly lines: readonly string[] }[] = []
process.on("unhandledRejection", (reason) => unhandled.push(reason))
/** Ends what a test of this file has opened, and looks at what it was told. A worker imports this module once, for many files. */
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

/** Is called after the test, the last first. */
export function afterwards(close: () => unknown): void {
  closers.push(close)
}

export interface Asker {
  /** "degraded" and "recovered", as they are told of, and logged: in turn, which is looked at after each test. */
  readonly events: readonly string[]
  /** Decisions so far. */
  readonly decisions: readonly Decision[]
  /** How many came later than the deadline. */
  late: number
  ask(partition?: string, cost?: number): Promise<Decision>
  /**
   * Asks for the same again and again, each time as soon as the answer is there, until one is (not) degraded; yields it. On a
   * busy machine a Redis that is well may miss the deadline, too.
   */
  askUntil(degraded: boolean, partition?: string): Promise<Decision>
  /** Asks until the end of the outage is told. */
  askUntilRecovered(): Promise<void>
  /** Whether the next decision comes without waiting for anything outside of this process. */
  decidesAtOnce(): Promise<boolean>
  /** Asks some 2,000 times a second, for four partitions in turn or others, until it is stopped; then waits for all. */
  load(partitionOf?: (nth: number) => string): () => Promise<void>
  /** Units that were granted and counted in the store, as far as the decisions tell. */
  granted(): number
}

/** A limiter on a store, and somebody who asks it. */
export function asker(
  store: Store,
  { limit = 1_000_000, window = "1 day", ...options }: LimiterSettings<RequestFacts> = {},
): Asker {
  const events: string[] = []
  const lines: string[] = []
  const decisions: Decision[] = []
  told.push({ events, lines })
  const log = ({ code }: { readonly code: string }) => {
    if (!OF_A_BUSY_PROCESS.includes(code)) lines.push(code)
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

  const self: Asker = {
    events,
    decisions,
    late: 0,
    async ask(partition = "192.0.2.1", cost = 1) {
      const deciding = limiter.decide({ remoteAddress: partition }, { cost })
      // The store sets the deadline of all requests of a turn at the end of the turn. Start the measurement after that, so that a
      // stall of this process delays both.
      queueMicrotask(async () => {
        if (!(await endsWithin(deadlineMs, deciding))) self.late++
      })
      const decision = await deciding
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
        // An outage ends after ten seconds without a failure, and a minute passes before another one is logged.
        aheadMs += 60_000
        // Of another partition each time: what is remembered of one tells nothing.
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
      // Of a test that failed, too.
      afterwards(stop)
      return stop
    },
    granted: () =>
      decisions.reduce((sum, { degraded, allowed, cost }) => sum + (allowed && !degraded ? cost : 0), 0),
  }
  return self
}

/** Another partition for each request: a key that has more than one unit has been counted twice. */
export function oneEach(nth: number): string {
  return `10.${nth >> 16}.${(nth >> 8) & 255}.${nth & 255}`
}
