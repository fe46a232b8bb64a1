import { BlockWatch } from "../../decision/block-watch.ts"
import { Decider } from "../../decision/decider.ts"
import { ClosedError, textOf } from "../../ground/errors.ts"
import { SafeEvents } from "../../ground/events.ts"
import { mustBe, requireValue } from "../../ground/option-checks.ts"
import { createWarner, type Warner } from "../../ground/warnings.ts"
import { FactsReaders } from "../../request/facts-readers.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import type { MemoryStore } from "../../stores/memory/memory-store.ts"
import type { CounterKey } from "../../stores/store.ts"
import { ClientReports } from "../events/client-reports.ts"
import { StoreReports } from "../events/store-reports.ts"
import { LIMITER_EVENTS, type LimiterEvents } from "../interface/limiter.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import type { RulesListener } from "../rule-set/limiter-reader.ts"
import { createRuleContext, type RuleContext } from "../rule-set/rule-context.ts"
import { blocksOf } from "../rule-set/rule-counters.ts"
import { WaitingRoom } from "../waiting/waiting-room.ts"

const IN_MEMORY = mustBe(
  "a store that resetAll() of a clock can empty",
  "memoryStore() in tests, or a store with another prefix or table for each test",
  (store) => typeof (store as Partial<MemoryStore>).resetAll === "function",
)

/**
 * The state that a limiter shares with the limiters of its routes. Parts that only some rules or calls need are created
 * on first use, because most limiters never need them.
 */
export class LimiterState<Request> implements RulesListener {
  readonly events: SafeEvents<LimiterEvents<Request>>
  readonly warner: Warner
  readonly context: RuleContext
  readonly decider: Decider
  /** The functions with which adapters read the requests of their frameworks. */
  readonly factsReaders: FactsReaders
  readonly #options: ParsedOptions
  readonly #reports: StoreReports<Request>
  /** Stops following the resets of a test's clock. */
  readonly #endResets: (() => void) | undefined
  #waitingRoom: WaitingRoom | undefined
  #clientReports: ClientReports<Request> | undefined
  isClosed = false

  /** Throws if the store is closed. */
  constructor(options: ParsedOptions) {
    this.#options = options
    this.events = new SafeEvents<LimiterEvents<Request>>(LIMITER_EVENTS, (error, name) =>
      this.warner.once(
        "SLUICE_CALLBACK_FAILED",
        `A listener of "${name}" failed: ${textOf(error)}. Handle the error in the listener.`,
        `on ${name}`,
        error,
      ),
    )
    this.warner = createWarner(options.logger, (warning) => this.events.emit("warning", warning))
    this.context = createRuleContext(options, this.warner)
    this.#reports = new StoreReports(options, this.events, this.warner)
    const { store, storeTimeoutMs, instances, clock } = options
    this.decider = new Decider({ store, storeTimeoutMs, instances, clock, ...this.#reports.listener })
    // Other processes may already have blocked clients in a shared store.
    if (store.isShared === true) this.blockWatch()
    this.factsReaders = new FactsReaders(takesAnything(options))
    this.#endResets = options.enabled ? clock.onReset?.(() => this.#resetAll()) : undefined
  }

  /** Number of undecided requests in the waiting room. */
  get waiting(): number {
    return this.#waitingRoom?.size ?? 0
  }

  /** Returns the waiting room, and creates it on first use. Throws ClosedError if the limiter is closed. */
  waitingRoom(): WaitingRoom {
    this.requireOpen()
    this.#waitingRoom ??= new WaitingRoom(this.decider, this.#options.clock)
    return this.#waitingRoom
  }

  /** Wakes the requests that wait for these counters, because the counters have units again. */
  wake(counters: readonly CounterKey[]): void {
    this.#waitingRoom?.wake(counters)
  }

  /** Returns the watch over blocked clients, and creates it on first use. Decisions then check for blocks. */
  blockWatch(): BlockWatch {
    const { service, store, storeTimeoutMs } = this.#options
    this.decider.blockWatch ??= new BlockWatch(this.context.blocks, blocksOf(service), store, storeTimeoutMs)
    return this.decider.blockWatch
  }

  follow(owner: object, rules: readonly ParsedRule[]): void {
    if (rules.some(({ notify }) => notify !== undefined)) {
      this.#clientReports ??= new ClientReports(this.events, this.#options.clock)
    }
    this.#clientReports?.follow(owner, rules)
  }

  turnToNewRules(): void {
    this.#waitingRoom?.turnToNewRules()
  }

  /** Starts or stops the reports about clients after event listeners were added or removed. */
  listenersChanged(): void {
    if (this.events.has("first-refusal")) {
      this.#clientReports ??= new ClientReports(this.events, this.#options.clock)
    }
    this.#clientReports?.listen()
  }

  requireOpen(): void {
    if (this.isClosed) throw closedError()
  }

  /** Rejects all waiting requests and all later calls. */
  close(): void {
    this.isClosed = true
    this.#waitingRoom?.close(closedError())
    this.decider.ledger.close()
  }

  /**
   * Unsubscribes from the store and the clock, which may outlive the limiter, and logs the losses that have not been
   * logged yet.
   */
  endReports(): void {
    this.#endResets?.()
    this.#reports.close()
  }

  /** Forgets everything that was counted. Throws if other processes may use the counters. */
  #resetAll(): void {
    const { store } = this.#options
    requireValue("store", store, IN_MEMORY)
    const memory = store as MemoryStore
    memory.resetAll()
    this.#clientReports?.forget()
  }
}

function closedError(): ClosedError {
  return new ClosedError("The limiter has been closed.")
}

/**
 * True if a request need not be an object, because the app's `fields` may read it or because no rule reads it.
 */
function takesAnything({ hasExtractors, inline, rules }: ParsedOptions): boolean {
  const inCode = inline === undefined ? rules : [inline]
  // The rules of a source are not known yet, and may read the request.
  return hasExtractors || (Array.isArray(inCode) && inCode.every(countsAllRequests))
}

function countsAllRequests({ fields, match }: ParsedRule): boolean {
  return fields.length === 0 && match === undefined
}
