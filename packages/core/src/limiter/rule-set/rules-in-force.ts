import { type Clock, waitUnheld } from "../../ground/clock.ts"
import { ClosedError, InvalidOptionError, InvalidRuleError, type Problem } from "../../ground/errors.ts"
import { show } from "../../ground/show.ts"
import { atOnce, held, ignore, inSlices, type Steps, unlessAborted } from "../../ground/time.ts"
import { recovered } from "../../rules/book/announcer.ts"
import { Complaint } from "../../rules/book/complaint.ts"
import { OpenBook } from "../../rules/book/open-book.ts"
import { parseBookOptions } from "../../rules/book/options.ts"
import { contentOf, rulesEvent } from "../../rules/book/rule-snapshot.ts"
import type { RulesReader, ServiceRules } from "../../rules/book/service-rules.ts"
import { WaitingList } from "../../rules/book/waiting-list.ts"
import type { ParsedRule } from "../../rules/parsing/parsed-rule.ts"
import type { Edition, ReadyOptions, RulesEvent, RulesStatus } from "../../rules/rule-book.ts"
import type { RuleSource } from "../../rules/source.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import type { LimiterParts } from "../parts.ts"
import { spareCapacityMonitor } from "../spare-capacity/monitor.ts"
import { claimNames, releaseNames } from "./name-claims.ts"
import { compileRuleSet, denyingRuleSet, type RuleSet } from "./rule-set.ts"

/** How long a request waits for the first rules, in milliseconds. Otherwise a source that hangs would stop the app. */
const MOST_WAIT_FOR_RULES_MS = 1_000

/**
 * Number of rules compiled in one turn of the event loop, which takes one or two milliseconds. More are compiled in
 * slices.
 */
const MOST_AT_ONCE = 100

/** The status of rules in code, which never change. */
const UNCHANGING: RulesStatus = { ageMs: 0, isStale: false, isRejected: false, problems: [] }

/**
 * The rules of a limiter that are in force now: its inline rule, the rules of its list, or the latest of its rule book.
 * Routes have instances of their own, each with its own inline rule. They share the other rules with the limiter.
 */
export class RulesInForce<Request> {
  readonly #options: ParsedOptions
  readonly #parts: LimiterParts<Request>
  readonly #inline: ParsedRule | undefined
  /** The instance that owns the list or book. For a route, it is the limiter's instance. */
  readonly #root: RulesInForce<Request>
  /** Returns the rules of all routes. */
  readonly #routes: () => readonly RulesInForce<Request>[]
  #shared: readonly ParsedRule[]
  /** Whether requests are refused because no rules have been loaded yet. */
  #isDenying = false
  #current: RuleSet
  /** Releases the monitor's lease. Present only while a rule depends on the spare capacity of this process. */
  #unwatch: (() => void) | undefined
  /** Present only if rules come from a source, or from a book that other limiters use, too. */
  #book: OpenBook | undefined
  #page: ServiceRules | undefined
  /** The reason why the latest edition is not in force, although its rules are valid. */
  #refused: InvalidRuleError | undefined
  /** The log messages about the refused edition. */
  readonly #complaint: Complaint
  /** The latest edition that came into force. */
  #edition: Edition | undefined
  /**
   * Number of editions accepted. It shows that a newer edition was accepted while one was being compiled; then the
   * older one is dropped.
   */
  #accepted = 0
  /** Settles when the edition that is being compiled is in force; undefined if there is none. */
  #compiling: Promise<void> | undefined
  readonly #waiting = new WaitingList()
  readonly #closing = new AbortController()
  /** Settles when the first rules are loaded, or cannot be loaded in time. Undefined from then on. */
  #first: Promise<void> | undefined
  readonly #reader: RulesReader = {
    onEdition: (edition, change) => this.#turnTo(edition, change),
    onError: (error) => this.#parts.events.emit("rule-error", error),
    onStale: (ageMs) => this.#parts.events.emit("rules-stale", { service: this.#options.service, ageMs }),
  }

  /**
   * Throws InvalidOptionError if another limiter counts under one of the names, and ClosedError for a closed book. For
   * a local source with invalid rules, throws RuleSourceError or InvalidRuleError that describes the problem.
   */
  constructor(
    options: ParsedOptions,
    parts: LimiterParts<Request>,
    routes: () => readonly RulesInForce<Request>[],
    root?: RulesInForce<Request>,
    inline: ParsedRule | undefined = options.inline,
  ) {
    this.#options = options
    this.#parts = parts
    this.#inline = inline
    this.#routes = routes
    this.#root = root ?? this
    this.#complaint = new Complaint(parts.warner, { wait: waitOf(options.clock) })
    const { rules, untilLoaded, enabled } = options
    const atFirst = isList(rules) ? rules : untilLoaded.defaultRules
    this.#shared = root === undefined ? atFirst : root.#shared
    this.#isDenying = root === undefined && untilLoaded.onRulesMissing === "deny"
    this.#current = this.#root.#isDenying
      ? denyingRuleSet(parts.context)
      : atOnce(this.#compile(this.#shared))
    this.#claimOrThrow()
    if (root === undefined && !isList(rules) && enabled) this.#openPage(rules)
    this.#watch()
  }

  get current(): RuleSet {
    return this.#current
  }

  /** A promise that settles when decisions can start; undefined if they can start now. */
  get first(): Promise<void> | undefined {
    return this.#root.#first
  }

  get status(): RulesStatus {
    const { book, refused } = { book: this.#root.#book, refused: this.#root.#refused }
    if (book === undefined) return UNCHANGING
    const status = book.statusOf(this.#options.service)
    return refused === undefined ? status : { ...status, isRejected: true, error: refused }
  }

  /** Returns the rules for a route, with the route's inline rule instead of the limiter's. */
  ofRoute(inline: ParsedRule): RulesInForce<Request> {
    return new RulesInForce(this.#options, this.#parts, noRoutes, this.#root, inline)
  }

  /** Keeps the process alive until it is settled. */
  async ready(options: ReadyOptions): Promise<void> {
    await held(this.#root.#ready(options))
  }

  async #ready(options: ReadyOptions): Promise<void> {
    if (this.#page === undefined) return
    await unlessAborted(this.#page.ready(options), this.#closing.signal)
    await this.#inForceNow()
    if (this.#refused === undefined) return
    if (options.retry !== true) throw this.#refused
    await this.#waiting.add(1, options)
  }

  async refresh(options: Pick<ReadyOptions, "signal">): Promise<void> {
    if (this.#root !== this) return this.#root.refresh(options)
    const { service } = this.#options
    if (this.#book === undefined) return
    await unlessAborted(this.#book.refresh({ service, signal: options.signal }), this.#closing.signal)
    await this.#inForceNow()
    if (this.#refused !== undefined) throw this.#refused
  }

  /** Resolves when the latest accepted edition is in force. */
  async #inForceNow(): Promise<void> {
    while (this.#compiling !== undefined) await unlessAborted(this.#compiling, this.#closing.signal)
  }

  close(): void {
    const { rules, service } = this.#options
    const error = new ClosedError("The limiter has been closed.")
    this.#accepted++
    this.#closing.abort(error)
    this.#waiting.close(error)
    this.#complaint.end()
    for (const each of [this, ...this.#routes()]) each.giveUp()
    this.#book?.leave(service, this.#reader)
    if (this.#book !== rules) this.#book?.close()
  }

  /** Releases its names and its monitor lease. For a route, called when its last mount has left. */
  giveUp(): void {
    releaseNames(this.#options.store, this)
    this.#unwatch?.()
    this.#unwatch = undefined
  }

  /** Compiles the shared rules and the inline rule. */
  #compile(shared: readonly ParsedRule[]): Steps<RuleSet> {
    const rules = this.#inline === undefined ? shared : [this.#inline, ...shared]
    return compileRuleSet(rules, this.#parts.context)
  }

  /** Compiles the shared rules for the limiter and for each of its routes. */
  *#compileAll(shared: readonly ParsedRule[]): Steps<Map<RulesInForce<Request>, RuleSet>> {
    const sets = new Map<RulesInForce<Request>, RuleSet>()
    for (const each of [this, ...this.#routes()]) sets.set(each, yield* each.#compile(shared))
    return sets
  }

  #watch(): void {
    if (this.#current.needsMonitor && this.#options.enabled) this.#unwatch ??= spareCapacityMonitor.lease()
    else {
      this.#unwatch?.()
      this.#unwatch = undefined
    }
  }

  #claimOrThrow(): void {
    const { store, service, enabled } = this.#options
    // A disabled limiter counts nothing, so its names stay free for another one.
    if (!enabled) return
    const [taken] = claimNames(store, service, this.#ownNames(), this)
    if (taken === undefined) return
    throw new InvalidOptionError([this.#takenProblem(taken)])
  }

  #ownNames(): readonly string[] {
    const shared = this.#root === this ? this.#shared.map(({ name }) => name) : []
    return this.#inline === undefined ? shared : [this.#inline.name, ...shared]
  }

  #takenProblem(name: string): Problem {
    const message = `another limiter already counts rule ${show(name)} of service ${show(this.#options.service)} on this store`
    const accepted = "another name or service, or one limiter for both mounts: rateLimit({ limiter })"
    return { path: "name", message, accepted }
  }

  #openPage(rules: RuleSource | OpenBook): void {
    const { clock, service, store } = this.#options
    try {
      this.#book = rules instanceof OpenBook ? rules : this.#ownBook(rules)
      this.#page = this.#book.open(service, this.#reader)
    } catch (error) {
      releaseNames(store, this)
      this.#book?.leave(service, this.#reader)
      if (this.#book !== rules) this.#book?.close()
      throw error
    }
    // A shared book may have rules already, or may have failed to load them.
    const isLoaded = this.#page.edition !== undefined && this.#compiling === undefined
    if (isLoaded || this.#book.statusOf(service).error !== undefined) return
    const stopWaiting = new AbortController()
    const done = () => {
      this.#first = undefined
      stopWaiting.abort()
    }
    const tooLong = waitOf(clock)(MOST_WAIT_FOR_RULES_MS, stopWaiting.signal)
    this.#first = Promise.race([this.#ready({}), tooLong]).then(done, done)
  }

  /** Creates a book for this limiter alone. Its warnings are emitted by the limiter. */
  #ownBook(source: RuleSource): OpenBook {
    const { clock, logger } = this.#options
    const book = new OpenBook(parseBookOptions({ source, clock, logger }))
    book.on("warning", (warning) => this.#parts.events.emit("warning", warning))
    return book
  }

  /**
   * Brings another edition into force as a whole, including the routes, as soon as it is compiled. Decisions in flight
   * finish on the previous edition. While another limiter counts under one of the names, nothing changes. When that
   * limiter releases names, it tries again.
   */
  #turnTo(edition: Edition, change: RulesEvent["change"]): void {
    const { store, service } = this.#options
    const names = edition.rules.map(({ name }) => name)
    const taken = claimNames(store, service, names, this, () => this.#turnTo(edition, change))
    if (taken.length > 0) {
      // The limiter is still being created, so its creation can fail.
      if (this.#page === undefined && this.#book?.isLocal === true) {
        throw new InvalidOptionError(taken.map((name) => this.#takenProblem(name)))
      }
      this.#refuse(new InvalidRuleError(taken.map((name) => this.#takenProblem(name))))
      return
    }
    this.#refused = undefined
    const number = ++this.#accepted
    const compiling = this.#compileAll(edition.rules)
    // A limiter that is being created may be used at once, and would admit requests without its rules.
    const isNeededNow = this.#page === undefined && !this.#isDenying
    if (isNeededNow || edition.rules.length * (1 + this.#routes().length) <= MOST_AT_ONCE) {
      this.#compiling = undefined
      this.#enforce(edition, change, atOnce(compiling))
      return
    }
    this.#compiling = inSlices(compiling).then((sets) => {
      if (number !== this.#accepted) return
      this.#compiling = undefined
      this.#enforce(edition, change, sets)
    })
    this.#compiling.catch(ignore)
  }

  #enforce(
    edition: Edition,
    change: RulesEvent["change"],
    sets: ReadonlyMap<RulesInForce<Request>, RuleSet>,
  ): void {
    if (this.#complaint.isRaised) this.#complaint.settle(`${this.#place}: ${recovered(contentOf(edition))}`)
    this.#edition = edition
    this.#isDenying = false
    for (const each of [this, ...this.#routes()]) {
      each.#shared = edition.rules
      // A route may have been added while the others were compiled.
      each.#current = sets.get(each) ?? atOnce(each.#compile(edition.rules))
      each.#watch()
    }
    this.#parts.waitingRoom.turnToNewRules()
    this.#waiting.succeeded(1)
    this.#parts.events.emit("rules", rulesEvent(edition, change))
  }

  #refuse(error: InvalidRuleError): void {
    this.#refused = error
    const isNews = this.#complaint.raise(`${this.#place}: ${error.message}\n${this.#inForce}`, error)
    if (isNews) this.#parts.events.emit("rule-error", error)
  }

  /** The name of the book and the service in messages. */
  get #place(): string {
    return `${this.#book?.name}, service ${show(this.#options.service)}`
  }

  /** Returns a sentence about the rules that apply while an edition is refused. */
  get #inForce(): string {
    if (this.#edition !== undefined) return `The previous rules stay in force: ${contentOf(this.#edition)}.`
    if (this.#isDenying) return "No rules are in force yet, so every request is refused."
    if (this.#shared.length === 0) return "No rules are in force yet, so every request is admitted."
    return `None of the stored rules are in force yet. The default rules stay in force: ${contentOf({ rules: this.#shared })}.`
  }
}

function noRoutes(): readonly never[] {
  return []
}

function waitOf(clock: Clock): NonNullable<Clock["wait"]> {
  return clock.wait === undefined ? waitUnheld : clock.wait.bind(clock)
}

// Array.isArray does not narrow a readonly list.
function isList(rules: ParsedOptions["rules"]): rules is readonly ParsedRule[] {
  return Array.isArray(rules)
}
