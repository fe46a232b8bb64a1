import {
  ClosedError,
  InvalidOptionError,
  type InvalidRuleError,
  type RulesEvent,
  type RulesStatus,
} from "@sluice/core"
import { type Incident, show } from "@sluice/core/kit"
import {
  type Edition,
  ignore,
  type OpenedRules,
  type ReadyOptions,
  type RulesReader,
  type SignalOption,
  unlessAborted,
} from "@sluice/core/rules"
import type { RuleBook } from "../rule-book.ts"
import { contentOf, type LoadFailure, recovered, rulesEvent } from "./edition.ts"
import { beginRejection, endRejection, rejectionIncident } from "./rejection-log.ts"
import type { ServiceFollower, ServiceRules } from "./service-rules.ts"

/** Whether this error means that a reader refuses a version. */
function isRefusal(error: unknown): error is InvalidRuleError {
  return (error as Partial<InvalidRuleError> | null | undefined)?.code === "SLUICE_INVALID_RULE"
}

/** The members of a book that a reading uses. */
export interface ReadBook extends Pick<RuleBook, "name" | "readsSynchronously" | "statusOf" | "refresh"> {
  enter(service: string, follower: ServiceFollower): ServiceRules
  leave(service: string, follower: ServiceFollower): void
}

/**
 * The rules of one service of a book, opened for one reader. The reader applies each version as a whole, or not at
 * all while it refuses the version.
 */
export class ServiceReading implements OpenedRules, ServiceFollower {
  readonly #book: ReadBook
  readonly #service: string
  readonly #reader: RulesReader
  readonly #onClose: () => void
  /** Undefined while the reader is being created. */
  readonly #rules: ServiceRules | undefined
  #edition: Edition | undefined
  /** The reason why the latest version is not in force, although its rules are valid. */
  #refused: InvalidRuleError | undefined
  /** The incident in the log for the refused version. */
  readonly #incident: Incident
  /** Settles when the latest version is in force; undefined if no version is being compiled. */
  #compiling: Promise<void> | undefined
  /** The calls that wait for a version that the reader accepts. */
  readonly #waiting: (() => void)[] = []
  readonly #closing = new AbortController()

  /**
   * Throws the same errors as `open` of live rules. `onClose` is called when the reader closes the reading or cannot
   * open it.
   */
  constructor(book: ReadBook, service: string, reader: RulesReader, onClose: () => void = ignore) {
    this.#book = book
    this.#service = service
    this.#reader = reader
    this.#onClose = onClose
    this.#incident = rejectionIncident(reader.warner, reader.clock)
    try {
      this.#rules = book.enter(service, this)
    } catch (error) {
      this.close(new ClosedError("The rules were never opened."))
      throw error
    }
  }

  get status(): RulesStatus {
    const status = this.#book.statusOf(this.#service)
    return this.#refused === undefined ? status : { ...status, isRejected: true, error: this.#refused }
  }

  async ready(options: ReadyOptions): Promise<void> {
    await this.#inForceAfter((this.#rules as ServiceRules).ready(options))
    if (this.#refused === undefined) return
    if (options.retry !== true) throw this.#refused
    const accepted = new Promise<void>((resolve) => this.#waiting.push(resolve))
    await this.#inForceAfter(unlessAborted(accepted, options.signal))
  }

  async refresh({ signal }: SignalOption): Promise<void> {
    await this.#inForceAfter(this.#book.refresh({ service: this.#service, signal }))
    if (this.#refused !== undefined) throw this.#refused
  }

  close(reason: Error): void {
    this.#compiling = undefined
    this.#closing.abort(reason)
    this.#incident.end()
    this.#book.leave(this.#service, this)
    this.#onClose()
  }

  /**
   * Applies another version as soon as the reader has compiled it. If the reader refuses the version, the previous
   * rules stay in force.
   */
  onEdition(edition: Edition, change: RulesEvent["change"]): void {
    let prepared: ReturnType<RulesReader["prepare"]>
    try {
      prepared = this.#reader.prepare(edition, () => this.onEdition(edition, change))
    } catch (error) {
      // Do not use `instanceof`, because the reader may use another copy of the core with its own error classes.
      if (!isRefusal(error)) throw error
      // The reader is still being created, so throw the error from its creation.
      if (this.#rules === undefined && this.#book.readsSynchronously)
        throw new InvalidOptionError(error.problems)
      this.#refuse(error)
      return
    }
    this.#refused = undefined
    if (!(prepared instanceof Promise)) {
      this.#enforce(edition, change, prepared)
      return
    }
    const compiling = prepared.then((bringIntoForce) => {
      // A newer version was accepted in the meantime, or the reading was closed.
      if (this.#compiling === compiling) this.#enforce(edition, change, bringIntoForce)
    })
    this.#compiling = compiling
    compiling.catch(ignore)
  }

  onError(error: LoadFailure): void {
    this.#reader.events.emit("rule-error", error)
  }

  onStale(ageMs: number): void {
    this.#reader.events.emit("rules-stale", { service: this.#service, ageMs })
  }

  /**
   * Resolves when `loaded` has resolved and the latest accepted version is in force. Rejects when the reading is
   * closed.
   */
  async #inForceAfter(loaded: Promise<void>): Promise<void> {
    await unlessAborted(loaded, this.#closing.signal)
    while (this.#compiling !== undefined) await unlessAborted(this.#compiling, this.#closing.signal)
  }

  #enforce(edition: Edition, change: RulesEvent["change"], bringIntoForce: () => void): void {
    this.#compiling = undefined
    this.#edition = edition
    bringIntoForce()
    // A newer version may have been refused while this version was compiled.
    if (this.#refused === undefined) {
      endRejection(this.#incident, `${this.#place}: ${recovered(contentOf(edition))}`)
      for (const resolve of this.#waiting.splice(0)) resolve()
    }
    this.#reader.events.emit("rules", rulesEvent(edition, change))
  }

  #refuse(error: InvalidRuleError): void {
    this.#refused = error
    const isNews = beginRejection(this.#incident, `${this.#place}: ${error.message}\n${this.#inForce}`, error)
    if (isNews) this.#reader.events.emit("rule-error", error)
  }

  /** The name of the book and the service in messages. */
  get #place(): string {
    return `${this.#book.name}, service ${show(this.#service)}`
  }

  /** Returns a sentence about the rules that apply while a version is refused. */
  get #inForce(): string {
    if (this.#edition !== undefined) {
      return `The previous rules stay in force: ${contentOf(this.#edition)}.`
    }
    const { defaultRules, onRulesMissing } = this.#reader.untilLoaded
    if (onRulesMissing === "deny") return "No rules are in force yet, so every request is refused."
    if (defaultRules.length === 0) return "No rules are in force yet, so every request is admitted."
    return `None of the stored rules are in force yet. The default rules stay in force: ${contentOf({ rules: defaultRules })}.`
  }
}
