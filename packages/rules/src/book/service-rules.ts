import { isDeepStrictEqual } from "node:util"
import { type ClosedError, InvalidRuleError, type RulesEvent } from "@sluice/core"
import type { Incident } from "@sluice/core/kit"
import type { Edition, ReadyOptions } from "@sluice/core/rules"
import type { LoadedRules } from "../source.ts"
import { editionOf, isNothing, type LoadFailure } from "./edition.ts"
import type { Loader } from "./loader.ts"

/**
 * Receives the changes and failures of the rules of a service. Only `onEdition` may throw, and only while the reader
 * is opening the rules.
 */
export interface ServiceFollower {
  /** Called when another version of the rules is in force. */
  onEdition(edition: Edition, change: RulesEvent["change"]): void
  onError(error: LoadFailure): void
  onStale(ageMs: number): void
}

/** Identifies stored rules: the stamp of the source or, without a stamp, everything that the source returned. */
type Fingerprint = string | LoadedRules

/** The effect of a load on the rules of a service. */
export interface RuleChange {
  readonly change: RulesEvent["change"]
  readonly edition: Edition
  readonly before: Edition | undefined
}

/** The rules of one service: the last valid version, and the loader that loads it by the name of the service. */
export class ServiceRules {
  readonly service: string
  readonly loader: Loader
  readonly readers: Set<ServiceFollower> = new Set()
  /** True while the rules are kept up to date, either by the list of all services or by the loader. */
  isFollowed = false
  /** True if the latest list of all services contains this service. */
  isListed = false
  /** The version in force. Undefined until the first load. Contains no rules if the source has none. */
  edition: Edition | undefined
  /** The number of the latest load that returned a result. */
  takenFrom = 0
  /**
   * The incident in the log for these rules. Undefined if nothing has been reported since the first limiter followed
   * the rules, or since the last limiter stopped following them.
   */
  incident: Incident | undefined
  #isNothing = true
  /** Fingerprint of the version in force. */
  #fingerprint: Fingerprint | undefined
  /** The version that was rejected after the version in force was accepted. */
  #rejected: { readonly fingerprint: Fingerprint; readonly error: InvalidRuleError } | undefined

  constructor(service: string, loaderOf: (rules: ServiceRules) => Loader) {
    this.service = service
    this.loader = loaderOf(this)
  }

  /** The version in force; also undefined if the source has no document for the service. */
  get known(): Edition | undefined {
    return this.#isNothing ? undefined : this.edition
  }

  /** Why the stored rules are not in force; undefined if they are in force. */
  get rejection(): InvalidRuleError | undefined {
    return this.#rejected?.error
  }

  /**
   * Resolves when a version is in force, even a version without rules. Rejects with the error of the next failed
   * load. Rejects immediately if the listed rules were rejected or the book is closed.
   */
  async ready(options: ReadyOptions): Promise<void> {
    const isWrong = this.isListed && this.edition === undefined && options.retry !== true
    if (isWrong && this.rejection !== undefined && !this.loader.isClosed) throw this.rejection
    await this.loader.ready(options, this.edition !== undefined)
  }

  /** Marks the service as followed. Forgets an earlier result without valid rules, because it may be outdated. */
  follow(): void {
    this.isFollowed = true
    // From now on, the log repeats a problem that was logged only once before.
    this.#forgetIncident()
    if (this.known !== undefined) return
    this.edition = undefined
    this.#fingerprint = undefined
    this.#rejected = undefined
  }

  /** Marks the service as not followed. Problems of its rules are no longer repeated in the log. */
  unfollow(): void {
    this.isFollowed = false
    this.#forgetIncident()
  }

  #forgetIncident(): void {
    this.incident?.end()
    this.incident = undefined
  }

  /** Stops loading. Waiting calls reject with the error, or resolve if there is no error. */
  close(error?: ClosedError): void {
    this.loader.close(error)
    this.incident?.end()
  }

  /** True if the rules with this stamp were already accepted or rejected, so they need not be read again. */
  hasRead(stamp: string): boolean {
    return this.#fingerprint === stamp || this.#rejected?.fingerprint === stamp
  }

  /**
   * Accepts the result of a load as a whole, or rejects it as a whole if any rule is invalid. If the service does not
   * have a version yet, its valid rules are accepted, unless `isStrict`. Returns undefined if nothing changes,
   * because these rules or newer rules are in force. Throws InvalidRuleError for a rejected version. If `found` is
   * the error of a failed read, throws that error.
   */
  take(load: number, found: LoadedRules | LoadFailure, isStrict: boolean): RuleChange | undefined {
    if (load < this.takenFrom) return undefined
    this.takenFrom = load
    if (found instanceof Error) throw found
    const fingerprint = found.stamp ?? found
    const rejected = this.#rejected
    if (rejected !== undefined && isDeepStrictEqual(rejected.fingerprint, fingerprint)) throw rejected.error
    this.#rejected = undefined
    if (isDeepStrictEqual(this.#fingerprint, fingerprint)) return undefined
    const edition = editionOf(this.service, found)
    const isFirst = this.known === undefined && edition.rules.length > 0
    if (edition.problems.length > 0 && (isStrict || !isFirst)) {
      const error = new InvalidRuleError(edition.problems)
      this.#rejected = { fingerprint, error }
      throw error
    }
    const [before, wasNothing] = [this.edition, this.#isNothing]
    this.#fingerprint = fingerprint
    this.edition = edition
    this.#isNothing = isNothing(edition, found.stamp)
    const change =
      before === undefined ? "loaded" : this.#isNothing ? "gone" : wasNothing ? "loaded" : "changed"
    return { change, edition, before }
  }
}
