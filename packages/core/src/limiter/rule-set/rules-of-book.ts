import { type Clock, waitOf } from "../../ground/clock.ts"
import { ClosedError, InvalidOptionError, InvalidRuleError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { show } from "../../ground/show.ts"
import { ignore, unlessAborted } from "../../ground/time.ts"
import { recovered } from "../../rules/book/announcer.ts"
import { Complaint } from "../../rules/book/complaint.ts"
import { OpenBook } from "../../rules/book/open-book.ts"
import { parseBookOptions } from "../../rules/book/options.ts"
import { contentOf, rulesEvent } from "../../rules/book/rule-snapshot.ts"
import type { RulesReader, ServiceRules } from "../../rules/book/service-rules.ts"
import { WaitingList } from "../../rules/book/waiting-list.ts"
import type { Edition, ReadyOptions, RulesEvent, RulesStatus } from "../../rules/rule-book.ts"
import type { RuleSource } from "../../rules/source.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import type { LimiterParts } from "../parts.ts"
import { claimNames, takenProblem } from "./name-claims.ts"

/** How long a request waits for the first rules, in milliseconds. Otherwise a source that hangs would stop the app. */
const MOST_WAIT_FOR_RULES_MS = 1_000

/** The limiter that has the rules. It owns their names. */
export interface RulesOwner {
  /** Compiles an edition, at once if `isNeededNow`. Returns the function that brings it into force. */
  compileAll(edition: Edition, isNeededNow: boolean): MaybePromise<() => void>
}

/**
 * The rules that a limiter has from a rule book: its own book for a source, or a book that other limiters use, too. It
 * brings each edition into force as a whole, or refuses it.
 */
export class RulesOfBook<Request> {
  readonly #options: ParsedOptions
  readonly #parts: LimiterParts<Request>
  readonly #owner: RulesOwner
  readonly #book: OpenBook
  /** Undefined while the limiter is being created. */
  readonly #page: ServiceRules | undefined
  /** The latest edition that came into force. */
  edition: Edition | undefined
  /** The reason why the latest edition is not in force, although its rules are valid. */
  #refused: InvalidRuleError | undefined
  /** The log messages about the refused edition. */
  readonly #complaint: Complaint
  /** Settles when the latest edition is in force; undefined if it is not being compiled. */
  #compiling: Promise<void> | undefined
  readonly #waiting = new WaitingList()
  readonly #closing = new AbortController()
  /** Settles when the first rules are loaded, or cannot be loaded in time. Undefined from then on. */
  first: Promise<void> | undefined
  readonly #reader: RulesReader = {
    onEdition: (edition, change) => this.#turnTo(edition, change),
    onError: (error) => this.#parts.events.emit("rule-error", error),
    onStale: (ageMs) => this.#parts.events.emit("rules-stale", { service: this.#options.service, ageMs }),
  }

  /**
   * Throws ClosedError for a closed book. For a local source with invalid rules, throws RuleSourceError or
   * InvalidRuleError that describes the problem.
   */
  constructor(
    options: ParsedOptions,
    parts: LimiterParts<Request>,
    rules: RuleSource | OpenBook,
    owner: RulesOwner,
  ) {
    this.#options = options
    this.#parts = parts
    this.#owner = owner
    this.#complaint = new Complaint(parts.warner, { wait: waitOf(options.clock) })
    this.#book = rules instanceof OpenBook ? rules : this.#ownBook(rules)
    try {
      this.#page = this.#book.open(options.service, this.#reader)
    } catch (error) {
      this.close()
      throw error
    }
    this.first = this.#loaded(this.#page, options.clock)
  }

  get status(): RulesStatus {
    const status = this.#book.statusOf(this.#options.service)
    return this.#refused === undefined ? status : { ...status, isRejected: true, error: this.#refused }
  }

  async ready(options: ReadyOptions): Promise<void> {
    await unlessAborted((this.#page as ServiceRules).ready(options), this.#closing.signal)
    await this.#inForceNow()
    if (this.#refused === undefined) return
    if (options.retry !== true) throw this.#refused
    await this.#waiting.add(1, options)
  }

  async refresh({ signal }: Pick<ReadyOptions, "signal">): Promise<void> {
    const { service } = this.#options
    await unlessAborted(this.#book.refresh({ service, signal }), this.#closing.signal)
    await this.#inForceNow()
    if (this.#refused !== undefined) throw this.#refused
  }

  close(): void {
    const error = new ClosedError("The limiter has been closed.")
    this.#compiling = undefined
    this.#closing.abort(error)
    this.#waiting.close(error)
    this.#complaint.end()
    this.#book.leave(this.#options.service, this.#reader)
    if (this.#book !== this.#options.rules) this.#book.close()
  }

  /** Resolves when the latest accepted edition is in force. */
  async #inForceNow(): Promise<void> {
    while (this.#compiling !== undefined) await unlessAborted(this.#compiling, this.#closing.signal)
  }

  /** Returns a promise that settles when decisions can start; undefined if they can start now. */
  #loaded({ edition }: ServiceRules, clock: Clock): Promise<void> | undefined {
    // A shared book may have rules already, or may have failed to load them.
    const isLoaded = edition !== undefined && this.#compiling === undefined
    if (isLoaded || this.#book.statusOf(this.#options.service).error !== undefined) return undefined
    const stopWaiting = new AbortController()
    const done = () => {
      this.first = undefined
      stopWaiting.abort()
    }
    const tooLong = waitOf(clock)(MOST_WAIT_FOR_RULES_MS, stopWaiting.signal)
    return Promise.race([this.ready({}), tooLong]).then(done, done)
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
    const taken = claimNames(store, service, names, this.#owner, () => this.#turnTo(edition, change))
    if (taken.length > 0) {
      const problems = taken.map((name) => takenProblem(service, name))
      // The limiter is still being created, so its creation can fail.
      if (this.#page === undefined && this.#book.options.loadSync !== undefined)
        throw new InvalidOptionError(problems)
      this.#refuse(new InvalidRuleError(problems))
      return
    }
    this.#refused = undefined
    // A limiter that is being created may be used at once, and would admit requests without its rules.
    const compiled = this.#owner.compileAll(edition, this.#page === undefined && !this.#isDenying)
    if (!(compiled instanceof Promise)) {
      this.#enforce(edition, change, compiled)
      return
    }
    const compiling = compiled.then((bringIntoForce) => {
      // A newer edition was accepted in the meantime, or the limiter was closed.
      if (this.#compiling === compiling) this.#enforce(edition, change, bringIntoForce)
    })
    this.#compiling = compiling
    compiling.catch(ignore)
  }

  #enforce(edition: Edition, change: RulesEvent["change"], bringIntoForce: () => void): void {
    this.#compiling = undefined
    this.edition = edition
    bringIntoForce()
    this.#parts.waitingRoom.turnToNewRules()
    // A newer edition may have been refused while this one was compiled.
    if (this.#refused === undefined) {
      this.#complaint.settle(`${this.#place}: ${recovered(contentOf(edition))}`)
      this.#waiting.succeeded(1)
    }
    this.#parts.events.emit("rules", rulesEvent(edition, change))
  }

  #refuse(error: InvalidRuleError): void {
    this.#refused = error
    const isNews = this.#complaint.raise(`${this.#place}: ${error.message}\n${this.#inForce}`, error)
    if (isNews) this.#parts.events.emit("rule-error", error)
  }

  /** True while requests are refused because no rules have been loaded yet. */
  get #isDenying(): boolean {
    return this.edition === undefined && this.#options.untilLoaded.onRulesMissing === "deny"
  }

  /** The name of the book and the service in messages. */
  get #place(): string {
    return `${this.#book.name}, service ${show(this.#options.service)}`
  }

  /** Returns a sentence about the rules that apply while an edition is refused. */
  get #inForce(): string {
    if (this.edition !== undefined) return `The previous rules stay in force: ${contentOf(this.edition)}.`
    const { defaultRules } = this.#options.untilLoaded
    if (this.#isDenying) return "No rules are in force yet, so every request is refused."
    if (defaultRules.length === 0) return "No rules are in force yet, so every request is admitted."
    return `None of the stored rules are in force yet. The default rules stay in force: ${contentOf({ rules: defaultRules })}.`
  }
}
