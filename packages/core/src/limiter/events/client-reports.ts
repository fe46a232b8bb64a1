import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import { type Clock, soundTime } from "../../ground/clock.ts"
import type { SafeEvents } from "../../ground/events.ts"
import { capacityOf } from "../../ground/policy.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import { BoundedTable, type TableEntry } from "../../stores/bounded-table.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { DecisionCall, LimiterEvents } from "../interface/limiter.ts"

/** Number of clients whose reports are remembered, in about 3 MB. */
const MOST_CLIENTS = 10_000

/** What is reported once in a window: a threshold in percent, or that the client is refused. */
type ClientReport = number | "refusal"

/** The reports about one counter. */
interface Reports extends TableEntry {
  usedMs: number
  /** For each report, the end of its window by the limiter's clock. */
  readonly untilMs: Map<ClientReport, number>
}

/**
 * Emits events about a client, each at most once in a window. "near-limit" is emitted when a client's used percentage
 * of a limit reaches a threshold in the rule's `notify`, and "first-refusal" when a rule refuses a client. This class
 * listens to decisions only while one of these events has a listener and, for "near-limit", a rule has thresholds.
 * Otherwise it costs requests nothing.
 */
export class ClientReports<Request> {
  readonly #events: SafeEvents<LimiterEvents<Request>>
  readonly #clock: Clock
  /** The thresholds of each rule, by its name, for the limiter and for each of its routes. */
  readonly #thresholdsOf = new Map<object, ReadonlyMap<string, readonly number[]>>()
  /** Created with the first report. A full table evicts the client that was least recently seen. */
  #reported: BoundedTable<Reports> | undefined
  #isListening = false

  constructor(events: SafeEvents<LimiterEvents<Request>>, clock: Clock) {
    this.#events = events
    this.#clock = clock
  }

  /** Sets the rules that are in force for `owner`, which is the limiter or a route. */
  follow(owner: object, rules: readonly ParsedRule[]): void {
    const thresholds = new Map<string, readonly number[]>()
    for (const { name, notify } of rules) if (notify !== undefined) thresholds.set(name, notify)
    if (thresholds.size > 0) this.#thresholdsOf.set(owner, thresholds)
    else this.#thresholdsOf.delete(owner)
    this.listen()
  }

  /** Starts or stops listening to decisions. Call this method when the listeners of the events have changed. */
  listen(): void {
    const isNearLimitNeeded = this.#thresholdsOf.size > 0 && this.#events.has("near-limit")
    const isNeeded = isNearLimitNeeded || this.#events.has("first-refusal")
    if (isNeeded === this.#isListening) return
    this.#isListening = isNeeded
    if (isNeeded) this.#events.on("decision", this.#look)
    else this.#events.off("decision", this.#look)
  }

  /** Forgets what was reported. */
  forget(): void {
    this.#reported = undefined
  }

  readonly #look = (decision: Decision, request: Request, call: DecisionCall): void => {
    const { counters } = call
    if (!decision.allowed && this.#isFirstRefusal(decision, counters)) {
      this.#events.emit("first-refusal", decision, request, call)
    }
    // A decision without the shared store has counted only the requests of this process.
    if (decision.degraded) return
    for (const check of decision.checks) {
      const thresholds = this.#thresholdsFor(check.policy)
      if (thresholds !== undefined) this.#lookAt(check, thresholds, counters, request)
    }
  }

  /** Returns false if the request was refused because no rules have loaded. */
  #isFirstRefusal({ policy, checks }: Decision, counters: readonly CounterKey[]): boolean {
    const counter = counters.find(({ policy: { name } }) => name === policy)
    const check = checks.find((each) => each.policy === policy)
    return counter !== undefined && check !== undefined && this.#isFirst(counter, "refusal", check)
  }

  /** Returns the thresholds of a rule. Owners with a rule of this name share the rule, so the first match is enough. */
  #thresholdsFor(policy: string): readonly number[] | undefined {
    for (const thresholds of this.#thresholdsOf.values()) {
      const found = thresholds.get(policy)
      if (found !== undefined) return found
    }
    return undefined
  }

  #lookAt(
    check: PolicyCheck,
    thresholds: readonly number[],
    counters: readonly CounterKey[],
    request: Request,
  ): void {
    const counter = counters.find(({ policy }) => policy.name === check.policy)
    const { policy, unit, limit, granted = 0, remaining, resetAfterMs, shadow } = check
    if (counter === undefined || remaining === undefined || !showsUse(check)) return
    const capacity = capacityOf(counter.policy) + granted
    const used = capacity - remaining
    for (const threshold of thresholds) {
      // Thresholds ascend, so all later ones are higher. A limit of 0 closes the rule, and is never reported.
      if (capacity === 0 || used * 100 < threshold * capacity) return
      if (!this.#isFirst(counter, threshold, check)) continue
      const event = {
        policy,
        unit,
        partition: counter.partition,
        threshold,
        used,
        remaining,
        limit,
        resetAfterMs,
        shadow,
      }
      this.#events.emit("near-limit", event, request)
    }
  }

  /** Returns true if this has not been reported in this window, and records the report. */
  #isFirst({ policy, partition }: CounterKey, report: ClientReport, check: PolicyCheck): boolean {
    const nowMs = soundTime(this.#clock)
    this.#reported ??= new BoundedTable(MOST_CLIENTS)
    let reports = this.#reported.find(policy.counter, partition)
    if (reports === undefined) {
      reports = { policy, partition, usedMs: nowMs, untilMs: new Map() }
      this.#reported.add(reports)
    }
    reports.usedMs = nowMs
    if (nowMs < (reports.untilMs.get(report) ?? nowMs)) return false
    // The units of a fixed window expire together. For other algorithms, and if no units are used, the next report has
    // to wait for a whole window.
    const restMs = policy.algorithm === "fixed-window" ? check.resetAfterMs : 0
    reports.untilMs.set(report, nowMs + (restMs || check.windowMs))
    return true
  }
}

/** True if the check contains the units in use, because its counter was read and no block hides the remaining units. */
function showsUse({ counts, refusal }: PolicyCheck): boolean {
  return counts !== undefined && refusal !== "penalty" && refusal !== "blocked"
}
